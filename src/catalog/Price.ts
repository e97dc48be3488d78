import { Option, Schema } from "effect"
import { Credits, CreditsFromString, zero } from "../domain/Credits.ts"
import { videoShortSeconds } from "../domain/Limits.ts"
import { tierOfSize } from "./bodies/Size.ts"

/** A price: never negative. */
export const Amount = CreditsFromString.check(
  Schema.isGreaterThanOrEqualToBigInt(0n, { message: "Expected an amount that is not negative" })
)

/** So many credits for each image that exists. */
const ImagePrice = Schema.Struct({
  per: Schema.Literal("image"),
  amount: Amount
})

/**
 * So many credits for each second of video, by tier; `tiers` overrides `amount`. A body without a
 * duration is 5 seconds (contract 1).
 */
const SecondPrice = Schema.Struct({
  per: Schema.Literal("second"),
  amount: Amount,
  tiers: Schema.optionalKey(
    Schema.Struct({
      "480P": Schema.optionalKey(Amount),
      "720P": Schema.optionalKey(Amount),
      "1080P": Schema.optionalKey(Amount)
    })
  )
})

/** So many credits for a task that makes all that was asked for. */
const CallPrice = Schema.Struct({
  per: Schema.Literal("call"),
  amount: Amount
})

/** What a task costs, as data: amounts are decimal strings of credits in JSON. */
export const PriceRule = Schema.Union([ImagePrice, SecondPrice, CallPrice])
export type PriceRule = typeof PriceRule.Type

const tokenRates = {
  input: Amount,
  output: Amount,
  /** Prompt tokens that the upstream found in its cache; `input` when left out. */
  cachedInput: Schema.optionalKey(Amount),
  /** Prompt tokens that the upstream wrote to its cache; `input` when left out. */
  cacheWrite: Schema.optionalKey(Amount),
  /** Those that it keeps there for longer than it does unasked; `cacheWrite` when left out. */
  cacheWriteLong: Schema.optionalKey(Amount),
  /** Output tokens spent on reasoning; `output` when left out. */
  reasoning: Schema.optionalKey(Amount)
}

/** Passthrough calls: credits for a million tokens in and out (contract 6). */
export const TokenPrice = Schema.Struct({
  per: Schema.Literal("million_tokens"),
  ...tokenRates,
  /** What the whole call costs when its prompt has more tokens than `above`. */
  long: Schema.optionalKey(
    Schema.Struct({
      above: Schema.Int.check(Schema.isGreaterThanOrEqualTo(1)),
      ...tokenRates
    })
  )
})
export type TokenPrice = typeof TokenPrice.Type

/** What a price reads in a decoded body. Every body has some of these. */
export interface PricedBody {
  readonly n?: number
  readonly duration?: number
  readonly size?: string | null
  readonly resolution?: string
}

interface Priced {
  readonly price: PriceRule
}

const times = (amount: Credits, count: number): Credits =>
  Credits.make(amount * BigInt(Math.max(0, Math.trunc(count))))

const perSecond = (price: typeof SecondPrice.Type, body: PricedBody): Credits => {
  const tier = body.resolution ?? tierOfSize(body.size ?? "")
  switch (tier) {
    case "480P":
    case "720P":
    case "1080P":
      return price.tiers?.[tier] ?? price.amount
    default:
      return price.amount
  }
}

/** How many results a body asks for; 1 where the model has no `n`. */
const requested = (body: PricedBody): number => body.n ?? 1

/** What one result costs. */
const each = (price: PriceRule, body: PricedBody): Credits =>
  price.per === "second"
    ? times(perSecond(price, body), body.duration ?? videoShortSeconds)
    : price.amount

/** The price of a task at create, held until it ends (contract 6). */
export const quote = (entry: Priced, body: PricedBody): Credits =>
  entry.price.per === "call" ? entry.price.amount : times(each(entry.price, body), requested(body))

const million = 1_000_000n

/**
 * Tokens of a call. The parts are counted in the sums: cached and written ones are input, those that
 * were written for long are written, reasoning is output.
 */
export interface TokenUsage {
  readonly inputTokens: number
  readonly outputTokens: number
  readonly cachedInputTokens?: number
  readonly cacheWriteTokens?: number
  readonly cacheWriteLongTokens?: number
  readonly reasoningTokens?: number
}

/** Of what a million tokens cost, for so many: not an amount yet, which is rounded up at the end. */
const forTokens = (rate: Credits, tokens: number): bigint => {
  const count = Math.trunc(tokens)
  return count > 0 ? rate * BigInt(count) : 0n
}

const roundedUp = (total: bigint): Credits => Credits.make((total + million - 1n) / million)

/** A call with a long prompt costs more for all of its tokens, not only for those beyond. */
const ratesOf = (price: TokenPrice, inputTokens: number) =>
  price.long !== undefined && inputTokens > price.long.above ? price.long : price

/** What a passthrough call costs, rounded up to a micro-credit. Contract 6. */
export const chargeTokens = (price: TokenPrice, usage: TokenUsage): Credits => {
  const rates = ratesOf(price, usage.inputTokens)
  const cached = Math.min(usage.cachedInputTokens ?? 0, usage.inputTokens)
  const written = Math.min(usage.cacheWriteTokens ?? 0, usage.inputTokens - cached)
  const long = Math.min(usage.cacheWriteLongTokens ?? 0, written)
  const reasoning = Math.min(usage.reasoningTokens ?? 0, usage.outputTokens)
  const write = rates.cacheWrite ?? rates.input
  const total =
    forTokens(rates.input, usage.inputTokens - cached - written) +
    forTokens(rates.cachedInput ?? rates.input, cached) +
    forTokens(write, written - long) +
    forTokens(rates.cacheWriteLong ?? write, long) +
    forTokens(rates.output, usage.outputTokens - reasoning) +
    forTokens(rates.reasoning ?? rates.output, reasoning)
  return roundedUp(total)
}

const dearest = (...rates: ReadonlyArray<Credits | undefined>): Credits =>
  rates.reduce<Credits>((most, rate = zero) => (rate > most ? rate : most), zero)

/** The most that so many tokens can cost: each at the dearest that it may turn out to be. */
export const holdTokens = (
  price: TokenPrice,
  inputTokens: number,
  outputTokens: number,
  keepsLong: boolean
): Credits => {
  const rates = ratesOf(price, inputTokens)
  const written = keepsLong ? rates.cacheWriteLong : undefined
  return roundedUp(
    forTokens(dearest(rates.input, rates.cacheWrite, written), inputTokens) +
      forTokens(dearest(rates.output, rates.reasoning), outputTokens)
  )
}

/**
 * What is settled of a held price when `produced` of the `requested` results exist: the whole hold
 * for all of them, its share (rounded up to a micro-credit) for some. The price in force at create
 * counts, whatever the catalog says by now (contract 6).
 */
export const chargeHeld = (held: Credits, requested: number, produced: number): Credits =>
  produced >= requested
    ? held
    : Credits.make((held * BigInt(produced) + BigInt(requested) - 1n) / BigInt(requested))

const Counted = Schema.Struct({ n: Schema.Int })
const decodeCounted = Schema.decodeUnknownOption(Counted)

/** How many results a stored body asks for; 1 where the model has no `n`. */
export const requestedOf = (body: unknown): number =>
  Option.match(decodeCounted(body), { onNone: () => 1, onSome: ({ n }) => n })
