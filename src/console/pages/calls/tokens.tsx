import type { Schemas } from "../../api/schema.ts"
import { None } from "../../components/Values.tsx"
import { callTexts } from "../../texts/en/calls.ts"

export type Call = Schemas["Call"]

const words = callTexts

/** The called model or, without one, the route. */
export const callName = ({ model, route, vendor }: Pick<Call, "model" | "route" | "vendor">) =>
  `${vendor}/${model ?? route}`

/** A count from the usage that the gateway recorded for a call. */
export const countIn = (usage: Call["usage"], name: string): number | undefined => {
  const value = usage?.[name]
  return typeof value === "number" ? value : undefined
}

/** Input and output tokens. `≈`: the vendor reported no figures, so the gateway estimated them. */
export const Tokens = ({ usage }: Pick<Call, "usage">) => {
  const input = countIn(usage, "inputTokens")
  const output = countIn(usage, "outputTokens")
  if (input === undefined && output === undefined) return <None />
  const cached = countIn(usage, "cachedInputTokens") ?? 0
  return (
    <span title={cached > 0 ? words.cached(cached.toLocaleString("en")) : undefined}>
      {usage?.["counted"] === true && <abbr title={words.counted}>≈ </abbr>}
      {(input ?? 0).toLocaleString("en")} / {(output ?? 0).toLocaleString("en")}
      {cached > 0 && <span class="hidden"> {words.cached(cached.toLocaleString("en"))}</span>}
    </span>
  )
}

const tones = { settled: "good", released: "going", lost: "bad" } as const

export const Outcome = ({ of }: { readonly of: Call["outcome"] }) => (
  <span class={`status ${tones[of]}`} title={of === "lost" ? words.lostHelp : undefined}>
    {words.outcomes[of]}
  </span>
)
