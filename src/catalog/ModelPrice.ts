import { Schema } from "effect"
import { bounded, zero } from "../domain/Credits.ts"
import type { Credits } from "../domain/Credits.ts"
import { Amount, chargeTokens, TokenPrice } from "./Price.ts"
import type { TokenUsage, Units } from "./Price.ts"

/** Of a text that is spoken, of a sound that is transcribed, of a reranker. */
const CharacterPrice = Schema.Struct({ per: Schema.Literal("million_characters"), amount: Amount })
const MinutePrice = Schema.Struct({ per: Schema.Literal("minute"), amount: Amount })
const SearchPrice = Schema.Struct({ per: Schema.Literal("search"), amount: Amount })

/** Credits for what is not counted in tokens. docs/catalog.md#prices-by-other-units */
export const UnitPrice = Schema.Union([CharacterPrice, MinutePrice, SearchPrice])
export type UnitPrice = typeof UnitPrice.Type

/** The price of a model that is called. */
export const ModelPrice = Schema.Union([TokenPrice, CharacterPrice, MinutePrice, SearchPrice])
export type ModelPrice = typeof ModelPrice.Type

/** What a model does, when it neither writes text nor embeds it. */
export const ModelKind = Schema.Literals(["speech", "transcription", "rerank"])
export type ModelKind = typeof ModelKind.Type

const units: Readonly<Record<ModelKind, UnitPrice["per"]>> = {
  speech: "million_characters",
  transcription: "minute",
  rerank: "search"
}

/** The units in which a model of a kind may be charged: what its calls show or its vendor reports. */
export const unitsFor = (kind: ModelKind | undefined): ReadonlyArray<ModelPrice["per"]> =>
  kind === undefined ? ["million_tokens"] : ["million_tokens", units[kind]]

/** What a price counts; `undefined`: tokens. */
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

/** Parts of the unit in one counted thing: sound is counted in milliseconds, so that no fraction is lost. */
const parts = {
  million_characters: { counted: 1, inUnit: 1_000_000n },
  minute: { counted: 1000, inUnit: 60_000n },
  search: { counted: 1, inUnit: 1n }
}

/** Rounded up to a micro-credit. */
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
