import { useState } from "preact/hooks"
import { playgroundTexts as words } from "../../texts/en/playground.ts"
import { CopyButton } from "../CopyButton.tsx"
import { Segments } from "../form/Segments.tsx"
import { Text } from "../Values.tsx"
import { languages, snippetOf } from "./snippets.ts"
import type { Language, ShownRequest } from "./snippets.ts"

/** A request as code. */
export const Code = ({ request }: { readonly request: ShownRequest }) => {
  const [language, setLanguage] = useState<Language>("curl")
  const text = snippetOf(language, request)
  return (
    <section class="as-code">
      <h2>{words.code}</h2>
      <div class="actions">
        <Segments
          label={words.language}
          value={language}
          options={languages.map((it) => [it, it])}
          onValue={(value) => setLanguage(languages.find((it) => it === value) ?? "curl")}
        />
        <CopyButton text={text} what={words.code} />
        <span class="faint">{words.codeHelp}</span>
      </div>
      <Text label={words.code} text={text} />
    </section>
  )
}
