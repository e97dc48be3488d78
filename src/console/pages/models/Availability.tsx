import { Time } from "../../components/Values.tsx"
import { isPast } from "../../format/time.ts"
import { texts } from "../../texts/en.ts"
import type { AnyModel } from "./price.tsx"

const words = texts.models

/** Whether the model is on its way out, and what comes after it. */
export const Availability = ({ of }: { readonly of: AnyModel }) => {
  const { deprecation, replacement, sandbox, sunset } = of
  const isDeprecated = deprecation !== null && isPast(deprecation)
  return (
    <>
      {sunset === null && !isDeprecated && <div>{words.available}</div>}
      {isDeprecated && <div class="status going">{words.deprecated}</div>}
      {deprecation !== null && !isDeprecated && (
        <div class="status going">
          {words.deprecatedFrom} <Time at={deprecation} />
        </div>
      )}
      {sunset !== null && (
        <div class="status bad">
          {words.sunset} <Time at={sunset} />
        </div>
      )}
      {replacement !== null && (
        <div class="faint">
          {words.replacement} {replacement}
        </div>
      )}
      {sandbox && <div class="faint">{words.sandbox}</div>}
    </>
  )
}
