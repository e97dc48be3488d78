import { Ago } from "../../components/Values.tsx"
import { isPast } from "../../format/time.ts"
import { modelTexts } from "../../texts/en/models.ts"
import type { AnyModel } from "./price.tsx"

const words = modelTexts

/** Whether the model is being retired, and its successor. */
export const Availability = ({ of }: { readonly of: AnyModel }) => {
  const { deprecation, replacement, sandbox, sunset } = of
  const isDeprecated = deprecation !== null && isPast(deprecation)
  return (
    <>
      {sunset === null && deprecation === null && (
        <span class="status good">{sandbox ? words.sandbox : words.available}</span>
      )}
      {isDeprecated && sunset === null && <span class="status going">{words.deprecated}</span>}
      {deprecation !== null && !isDeprecated && sunset === null && (
        <span class="status going">
          {words.deprecatedFrom} <Ago at={deprecation} />
        </span>
      )}
      {sunset !== null && (
        <span class="status bad">
          {words.sunset} <Ago at={sunset} />
        </span>
      )}
      {replacement !== null && (
        <span class="faint">
          {" "}
          · {words.replacement} {replacement}
        </span>
      )}
    </>
  )
}
