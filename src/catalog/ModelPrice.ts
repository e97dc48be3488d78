import { Schema } from "effect"
import { bounded, zero } from "../domain/Credits.ts"
import type { Credits } from "../domain/Credits.ts"
import { Amount, chargeTokens, TokenPrice } from "./Price.ts"
import type { TokenUsage, Units } from "./Price.ts"

/** Units of speech, transcription and rerank models. */
const CharacterPrice = Schema.Struct({ per: Schema.Literal("million_characters"), amount: Amount })
const MinutePrice = Schema.Struct({ per: Schema.Literal("minute"), amount: Amount })
const SearchPrice = Schema.Struct({ per: Schema.Literal("search"), amount: Amount })

/** A price in credits per unit other than tokens. docs/catalog.md#prices-by-other-units */
export const UnitPrice = Schema.Union([CharacterPrice, MinutePrice, SearchPrice])
export type UnitPrice = typeof UnitPrice.Type

/** The price of a called model. */
export const ModelPrice = Schema.Union([TokenPrice, CharacterPrice, MinutePrice, SearchPrice])
export type ModelPrice = typeof ModelPrice.Type

/** The kind of a model that neither writes nor embeds text. */
export const ModelKind = Schema.Literals(["speech", "transcription", "rerank"])
export type ModelKind = typeof ModelKind.Type

const units: Readonly<Record<ModelKind, UnitPrice["per"]>> = {
  speech: "million_characters",
  transcription: "minute",
  rerank: "search"
}

/** The units in which a model of a kind may be charged. Its calls show them or its vendor reports them. */
export const unitsFor = (kind: ModelKind | undefined): ReadonlyArray<ModelPrice["per"]> =>
  kind === undefined ? ["million_tokens"] : ["million_tokens", units[kind]]

/** The unit that a price counts; `undefined` for tokens. */
export const unitOf = ({ per }: ModelPrice): keyof Units | undefined => {
  switch (per) {
    case "million_characters":
      return "characters"
    case "minute":
      return "seconds"
    case "search":
      return "searches"
    case "million_tokens":
      return undefined
  }
}

/** How counts convert to units. Audio is counted in milliseconds, so that no fraction of a second is lost. */
const parts = {
  million_characters: { counted: 1, inUnit: 1_000_000n },
  minute: { counted: 1000, inUnit: 60_000n },
  search: { counted: 1, inUnit: 1n }
}

/** The charge for a count, rounded up to a micro-credit. */
export const chargeUnits = ({ amount, per }: UnitPrice, count: number): Credits => {
  const { counted, inUnit } = parts[per]
  const whole = Math.ceil(count * counted)
  return whole > 0 ? bounded((amount * BigInt(whole) + inUnit - 1n) / inUnit) : zero
}

/** The charge of a call, rounded up to a micro-credit. */
export const chargeUsage = (price: ModelPrice, usage: TokenUsage): Credits => {
  if (price.per === "million_tokens") return chargeTokens(price, usage)
  const unit = unitOf(price)
  return chargeUnits(price, (unit && usage[unit]) ?? 0)
}
