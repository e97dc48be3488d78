import { api } from "../../api/client.ts"
import { ApiFailure } from "../../api/problem.ts"
import { useResource } from "../../api/resource.ts"
import type { Schemas } from "../../api/schema.ts"
import { Code } from "../../components/code/Code.tsx"
import { CopyButton } from "../../components/CopyButton.tsx"
import { Loaded } from "../../components/States.tsx"
import { Text } from "../../components/Values.tsx"
import { indented } from "../../format/json.ts"
import { contentTexts as words } from "../../texts/en/contents.ts"
import { KeepCalls, useKeepsCalls } from "../calls/KeepCalls.tsx"
import type { Call } from "../calls/tokens.tsx"
import { requestAsCode } from "./content.ts"

type Content = Schemas["CallContent"]

/** The call's request and response, if they were kept. */
export const CallContent = ({ call }: { readonly call: Call }) => {
  const content = useResource(call.id, () =>
    api.GET("/manage/v1/calls/{id}/content", { path: { id: call.id } }).catch((cause: unknown) => {
      if (cause instanceof ApiFailure && cause.problem.status === 404) return null
      throw cause
    })
  )
  return (
    <Loaded of={content}>{(it) => (it === null ? <NotKept /> : <Texts content={it} />)}</Loaded>
  )
}

const NotKept = () => {
  const settings = useKeepsCalls()
  return (
    <section class="kept">
      <h2>{words.title}</h2>
      <Loaded of={settings}>
        {({ keep_calls: isKept }) => (
          <>
            <p class="faint">{isKept ? words.missing : words.isOff}</p>
            {!isKept && (
              <div class="actions">
                <KeepCalls
                  isKept={isKept}
                  onChanged={(kept) => settings.set({ keep_calls: kept })}
                />
              </div>
            )}
          </>
        )}
      </Loaded>
    </section>
  )
}

const Texts = ({ content }: { readonly content: Content }) => {
  const request = requestAsCode(content)
  return (
    <section class="kept">
      <div class="columns">
        <Side name={words.request} side={content.request} none={words.noRequest} />
        <Side name={words.response} side={content.response} none={words.noResponse} />
      </div>
      {request === undefined ? (
        content.request !== null && <p class="faint">{words.noCode}</p>
      ) : (
        <Code request={request} />
      )}
    </section>
  )
}

interface SideProps {
  readonly name: string
  readonly side: Content["request"]
  readonly none: string
}

const Side = ({ name, none, side }: SideProps) => {
  if (side === null) {
    return (
      <section>
        <h2>{name}</h2>
        <p class="faint">{none}</p>
      </section>
    )
  }
  const text = indented(side.text)
  return (
    <section>
      <div class="text-head">
        <h2>{name}</h2>
        <CopyButton text={text} what={name} />
      </div>
      <Text label={name} text={text} />
      {side.truncated && <p class="faint">{words.truncated(side.bytes.toLocaleString("en"))}</p>}
    </section>
  )
}
