import { useState } from "preact/hooks"
import { CopyButton } from "../../components/CopyButton.tsx"
import { playgroundTexts as words } from "../../texts/en/playground.ts"
import { languages, snippetOf } from "./snippets.ts"
import type { Language, ShownRequest } from "./snippets.ts"

/** The same request by program. */
export const Code = ({ request }: { readonly request: ShownRequest }) => {
  const [language, setLanguage] = useState<Language>("curl")
  const text = snippetOf(language, request)
  return (
    <section>
      <h2>{words.code}</h2>
      <p class="faint">{words.codeHelp}</p>
      <div class="actions" role="group" aria-label={words.language}>
        {languages.map((it) => (
          <button
            key={it}
            type="button"
            class="small"
            aria-pressed={it === language}
            onClick={() => setLanguage(it)}
          >
            {it}
          </button>
        ))}
        <CopyButton text={text} what={words.code} />
      </div>
      <pre class="json" tabIndex={0} role="region" aria-label={words.code}>
        {text}
      </pre>
    </section>
  )
}
