import type { Schemas } from "../../api/schema.ts"
import { Credits } from "../../components/Values.tsx"
import { showCredits } from "../../format/credits.ts"
import { modelTexts } from "../../texts/en/models.ts"

export type AnyModel = Schemas["Model"] | Schemas["TokenModel"]

const words = modelTexts

/** What models return, in the order of lists. */
export const kinds = ["images", "videos", "audios", "meshes", "documents", "token"] as const
export const kindOf = (model: AnyModel) => (model.type === "token" ? "token" : model.result)

interface Rate {
  readonly name: string
  readonly amount: string
  /** The unit of the amount, unless the name states it. */
  readonly unit?: string
}

const tokenRates = [
  "input",
  "cached_input",
  "cache_write",
  "cache_write_long",
  "output",
  "reasoning",
  "audio_input",
  "image_output"
] as const

const ratesOfTokens = (price: Readonly<Record<(typeof tokenRates)[number], string>>) =>
  tokenRates.map((it) => ({ name: words.rates[it], amount: price[it], unit: words.perMillion }))

type ToolPrice = Schemas["TokenPrice"]["tools"][string]

/** With rates for its tokens, the amount is only the hold of a use. */
const ratesOfTool = (name: string, { amount, per, tokens }: ToolPrice): ReadonlyArray<Rate> =>
  tokens === undefined
    ? [{ name: words.tool(name, per), amount }]
    : Object.entries(tokens).map(([kind, rate]) => ({
        name: words.toolTokens(name, kind),
        amount: rate,
        unit: words.perMillion
      }))

/** All rates of a model, the usual ones first. */
export const ratesOf = ({ price }: AnyModel): ReadonlyArray<Rate> => {
  if (price.per === "million_tokens") {
    const { long } = price
    return [
      ...ratesOfTokens(price),
      ...(long === null
        ? []
        : ratesOfTokens(long).map(({ amount, name, unit }) => ({
            name: words.longRate(name, long.above),
            amount,
            unit
          }))),
      ...Object.entries(price.tools).flatMap(([name, tool]) => ratesOfTool(name, tool))
    ]
  }
  // The amount depends on the request; the playground shows it
  if (price.per === "expression") return []
  const tiers = price.per === "second" ? Object.entries(price.tiers ?? {}) : []
  const unit = words.per[price.per]
  return [
    { name: tiers.length === 0 ? words.price : words.tierOthers, amount: price.amount, unit },
    ...tiers.flatMap(([name, amount]) => (amount === undefined ? [] : [{ name, amount, unit }]))
  ]
}

/** The price on one line. */
export const Price = ({ of }: { readonly of: Pick<AnyModel, "price"> }) => {
  const { price } = of
  if (price.per === "expression") return <span class="faint">{words.byRequest}</span>
  return price.per === "million_tokens" ? (
    <>
      <Credits amount={price.input} /> {words.in} · <Credits amount={price.output} /> {words.out}{" "}
      <span class="faint">{words.perMillion}</span>
    </>
  ) : (
    <>
      <Credits amount={price.amount} /> <span class="faint">{words.per[price.per]}</span>
    </>
  )
}

/** The same as text, for options. */
export const priceText = ({ price }: Pick<AnyModel, "price">): string =>
  price.per === "expression"
    ? words.byRequest
    : price.per === "million_tokens"
      ? `${showCredits(price.input)} ${words.in}, ${showCredits(price.output)} ${words.out}`
      : `${showCredits(price.amount)} ${words.per[price.per]}`
