import { Option, Result, Schema } from "effect"
import {
  bounded,
  Credits,
  ExactCreditsFromString,
  microPerCredit,
  zero
} from "../domain/Credits.ts"
import { videoShortSeconds } from "../domain/limits/Limits.ts"
import { tierOfSize } from "./bodies/Size.ts"
import type { DescribedBody } from "./jobs/DescribedBody.ts"
import { evaluate, Expression } from "./jobs/Expression.ts"
import { toolTokenKinds, toolTokensName } from "./ToolUses.ts"
import type { ToolUses } from "./ToolUses.ts"

/** A price, never negative. */
export const Amount = ExactCreditsFromString.check(
  Schema.isGreaterThanOrEqualToBigInt(0n, { message: "Expected an amount that is not negative" })
)

/** Credits per generated image. */
const ImagePrice = Schema.Struct({
  per: Schema.Literal("image"),
  amount: Amount
})

/** Credits per second of video; `tiers` overrides `amount`. */
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

/** Credits for a task that produces all requested results. */
export const CallPrice = Schema.Struct({
  per: Schema.Literal("call"),
  amount: Amount
})

/**
 * Prices by expressions, in micro-credits. `hold` reads the body and gives an upper bound. `capture` reads body, usage
 * and number of results, and gives the charge. Without `capture`, or if figures that it reads are missing, the charge
 * is the hold in proportion to the results. docs/vendors-as-files.md#prices
 */
export const ExpressionPrice = Schema.Struct({
  per: Schema.Literal("expression"),
  hold: Expression("price"),
  capture: Schema.optionalKey(Expression("price"))
})
export type ExpressionPrice = typeof ExpressionPrice.Type

/** docs/reference/wallet.md#price-of-a-task */
export const PriceRule = Schema.Union([ImagePrice, SecondPrice, CallPrice, ExpressionPrice])
export type PriceRule = typeof PriceRule.Type

const tokenRates = {
  input: Amount,
  output: Amount,
  /** Prompt tokens read from the upstream's cache; default `input`. */
  cachedInput: Schema.optionalKey(Amount),
  /** Prompt tokens written to the upstream's cache; default `input`. */
  cacheWrite: Schema.optionalKey(Amount),
  /** Prompt tokens written with a longer lifetime than the default; default `cacheWrite`. */
  cacheWriteLong: Schema.optionalKey(Amount),
  /** Output tokens spent on reasoning; default `output`. */
  reasoning: Schema.optionalKey(Amount),
  /** Audio prompt tokens not read from the cache; default `input`. */
  audioInput: Schema.optionalKey(Amount),
  /** Image output tokens; default `output`. */
  imageOutput: Schema.optionalKey(Amount)
}

/**
 * The price per use of a tool, per container that it ran in, or once per call that used it. With `tokens`, `amount` is
 * the most that a use can cost: it is held, and charged only if the vendor reports no tokens of the tool.
 */
export const ToolPrice = Schema.Struct({
  per: Schema.Literals(["use", "container", "call"]),
  amount: Amount,
  /** Credits per million tokens of the tool's own model. */
  tokens: Schema.optionalKey(
    Schema.Struct({
      input: Amount,
      cached_input: Amount,
      image_input: Amount,
      cached_image_input: Amount,
      output: Amount
    })
  )
})

type ToolTokenRates = NonNullable<(typeof ToolPrice.Type)["tokens"]>

const toolName = Schema.String.check(
  Schema.isPattern(/^[a-z][a-z_]{0,63}$/u, { expected: "the name of a tool, such as web_search" })
)

/** The fraction of the rates that a batch costs: above 0, at most 1. */
const BatchShare = Amount.check(
  Schema.isBetweenBigInt(
    { minimum: 1n, maximum: microPerCredit },
    { message: "Expected a part above 0, at most 1" }
  )
)

/** Credits per million tokens. docs/reference/wallet.md#price-of-a-call */
export const TokenPrice = Schema.Struct({
  per: Schema.Literal("million_tokens"),
  /** If absent, the model is not sold in batches. docs/reference/vendor-batches.md#price */
  batch: Schema.optionalKey(BatchShare),
  /** Prices of tools that the vendor runs, by name. docs/reference/wallet.md#tools-that-the-vendor-runs */
  tools: Schema.optionalKey(Schema.Record(toolName, ToolPrice)),
  ...tokenRates,
  /** Rates for the whole call if its prompt has more tokens than `above`. */
  long: Schema.optionalKey(
    Schema.Struct({
      above: Schema.Int.check(Schema.isGreaterThanOrEqualTo(1)),
      ...tokenRates
    })
  )
})
export type TokenPrice = typeof TokenPrice.Type

/** The fields of a decoded body that determine its price. Every body has some of them. */
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
  bounded(amount * BigInt(Math.max(0, Math.trunc(count))))

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

/** Requested results; 1 if the model has no `n`. */
const requested = (body: PricedBody): number => body.n ?? 1

/** The price of one result. */
const priceOfOne = (price: Exclude<PriceRule, ExpressionPrice>, body: PricedBody): Credits =>
  price.per === "second"
    ? times(perSecond(price, body), body.duration ?? videoShortSeconds)
    : price.amount

/** The amount of a price by expression. Fails if it cannot be computed or is negative. */
const evaluated = (
  text: string,
  scope: Readonly<Record<string, unknown>>
): Result.Result<Credits, string> =>
  Result.flatMap(evaluate(text, "price", scope), (amount) =>
    typeof amount === "bigint" && amount >= 0n
      ? Result.succeed(bounded(amount))
      : Result.fail("it is not a whole number of micro-credits")
  )

/**
 * The price of a task at its creation, held until the task ends. Fails if a price by expression cannot be computed for
 * the body. docs/reference/wallet.md#holds
 */
export const quote = (
  { price }: Priced,
  body: PricedBody | DescribedBody
): Result.Result<Credits, string> => {
  if (price.per === "expression") return evaluated(price.hold, { body })
  const fields: PricedBody = body
  return Result.succeed(
    price.per === "call" ? price.amount : times(priceOfOne(price, fields), requested(fields))
  )
}

/** What determines the charge of an ended task, in addition to its hold. */
export interface Produced {
  readonly body: unknown
  /** The vendor's figures. */
  readonly usage: unknown
  readonly results: number
}

/**
 * The charge that the `capture` expression gives, at most the hold; `undefined` if there is no such expression or its
 * figures are missing.
 */
export const capturedBy = (
  price: PriceRule,
  held: Credits,
  produced: Produced
): Credits | undefined => {
  if (price.per !== "expression" || price.capture === undefined) return undefined
  const amount = Result.getOrUndefined(evaluated(price.capture, { ...produced }))
  return amount === undefined || amount <= held ? amount : held
}

const million = 1_000_000n

const rateNames = [
  "input",
  "output",
  "cachedInput",
  "cacheWrite",
  "cacheWriteLong",
  "reasoning",
  "audioInput",
  "imageOutput"
] as const

type Rates = Pick<TokenPrice, (typeof rateNames)[number]>

const ratesAt = (rates: Rates, share: bigint): Rates => ({
  ...rates,
  ...Object.fromEntries(
    rateNames.flatMap((name) => {
      const rate = rates[name]
      if (rate === undefined) return []
      return [[name, Credits.make((rate * share + microPerCredit - 1n) / microPerCredit)]]
    })
  )
})

const batchPrices = new WeakMap<TokenPrice, TokenPrice>()

/**
 * The price of a batched request: the rates times `batch`, each rounded up to a micro-credit per million tokens. Tools
 * have their normal price. `undefined` if the model is not sold in batches.
 */
export const batchPriceOf = (
  price: TokenPrice | { readonly per: "million_characters" | "minute" | "search" }
): TokenPrice | undefined => {
  if (price.per !== "million_tokens" || price.batch === undefined) return undefined
  const { batch, long } = price
  const known = batchPrices.get(price)
  if (known !== undefined) return known
  const made: TokenPrice = {
    ...price,
    ...ratesAt(price, batch),
    ...(long === undefined ? {} : { long: { above: long.above, ...ratesAt(long, batch) } })
  }
  batchPrices.set(price, made)
  return made
}

/** What a call used in addition to tokens, or instead of them. */
export interface Units {
  /** Unicode code points of the spoken text. */
  readonly characters?: number
  /** Duration of the transcribed audio. */
  readonly seconds?: number
  /** Searches of a reranker, as its vendor counts them. */
  readonly searches?: number
}

/**
 * Tokens of a call. Each part is included in its sum: cached, written and audio tokens in the input, long-lived written
 * tokens in the written tokens, reasoning and image tokens in the output. Audio tokens are those that were not cached.
 */
export interface TokenUsage extends Units {
  readonly inputTokens: number
  readonly outputTokens: number
  readonly cachedInputTokens?: number
  readonly cacheWriteTokens?: number
  readonly cacheWriteLongTokens?: number
  readonly reasoningTokens?: number
  readonly audioInputTokens?: number
  readonly imageOutputTokens?: number
  /** Input tokens that were read to compact the context, before the prompt was read. */
  readonly compactedTokens?: number
  readonly tools?: ToolUses
}

/** Rate times tokens, not divided by a million yet, so that the sum is rounded up only once. */
const forTokens = (rate: Credits, tokens: number): bigint => {
  const count = Math.trunc(tokens)
  return count > 0 ? rate * BigInt(count) : 0n
}

const roundedUp = (total: bigint): Credits => Credits.make((total + million - 1n) / million)

/** The rates for a long prompt apply to all tokens of the call, not only to those above the bound. */
const ratesOf = (price: TokenPrice, inputTokens: number) =>
  price.long !== undefined && inputTokens > price.long.above ? price.long : price

/** The charge of a passthrough call, rounded up to a micro-credit. */
export const chargeTokens = (price: TokenPrice, usage: TokenUsage): Credits => {
  const { compactedTokens = 0, inputTokens } = usage
  const rates = ratesOf(price, Math.max(compactedTokens, inputTokens - compactedTokens))
  const cached = Math.min(usage.cachedInputTokens ?? 0, usage.inputTokens)
  const written = Math.min(usage.cacheWriteTokens ?? 0, usage.inputTokens - cached)
  const long = Math.min(usage.cacheWriteLongTokens ?? 0, written)
  const audio = Math.min(usage.audioInputTokens ?? 0, usage.inputTokens - cached - written)
  const reasoning = Math.min(usage.reasoningTokens ?? 0, usage.outputTokens)
  const image = Math.min(usage.imageOutputTokens ?? 0, usage.outputTokens - reasoning)
  const write = rates.cacheWrite ?? rates.input
  const total =
    forTokens(rates.input, usage.inputTokens - cached - written - audio) +
    forTokens(rates.audioInput ?? rates.input, audio) +
    forTokens(rates.cachedInput ?? rates.input, cached) +
    forTokens(write, written - long) +
    forTokens(rates.cacheWriteLong ?? write, long) +
    forTokens(rates.output, usage.outputTokens - reasoning - image) +
    forTokens(rates.imageOutput ?? rates.output, image) +
    forTokens(rates.reasoning ?? rates.output, reasoning)
  return bounded(roundedUp(total) + toolCost(price, usage.tools))
}

const highest = (...rates: ReadonlyArray<Credits | undefined>): Credits =>
  rates.reduce<Credits>((most, rate = zero) => (rate > most ? rate : most), zero)

/** The hold of a call: every token at the highest rate that may apply to it. */
export const holdTokens = (
  price: TokenPrice,
  inputTokens: number,
  outputTokens: number,
  keepsLong: boolean,
  tools?: ToolUses
): Credits => {
  const rates = ratesOf(price, inputTokens)
  const written = keepsLong ? rates.cacheWriteLong : undefined
  const total =
    forTokens(highest(rates.input, rates.audioInput, rates.cacheWrite, written), inputTokens) +
    forTokens(highest(rates.output, rates.reasoning, rates.imageOutput), outputTokens)
  return bounded(roundedUp(total) + toolCost(price, tools))
}

/** The price of a tool. Responses report a tool and its preview under one name. */
export const toolPriceOf = ({ tools = {} }: TokenPrice, name: string) => {
  const found = [name, `${name}_preview`].find((it) => Object.hasOwn(tools, it))
  return found === undefined ? undefined : tools[found]
}

/** The cost of the uses of tools. A tool without a price is refused before it can be used. */
const toolCost = (price: TokenPrice, uses: ToolUses | undefined): bigint => {
  if (uses === undefined) return 0n
  return Object.entries(uses).reduce((sum, [name, count]) => {
    const { amount = zero, per, tokens } = toolPriceOf(price, name) ?? {}
    if (tokens !== undefined && Object.hasOwn(uses, toolTokensName(name, "output"))) {
      return sum + toolTokensCost(name, tokens, uses)
    }
    return sum + amount * BigInt(per === "call" ? Math.min(1, count) : count)
  }, 0n)
}

const toolTokensCost = (name: string, rates: ToolTokenRates, uses: ToolUses): bigint =>
  roundedUp(
    toolTokenKinds.reduce(
      (sum, kind) => sum + forTokens(rates[kind], uses[toolTokensName(name, kind)] ?? 0),
      0n
    )
  )

/**
 * The part of a hold that is settled when `produced` of the `requested` results exist, rounded up to a micro-credit.
 * The price at the task's creation applies, not that of the current catalog. docs/reference/wallet.md#settlement
 */
export const chargeHeld = (held: Credits, requested: number, produced: number): Credits =>
  produced >= requested
    ? held
    : Credits.make((held * BigInt(produced) + BigInt(requested) - 1n) / BigInt(requested))

const Counted = Schema.Struct({ n: Schema.Int })
const decodeCounted = Schema.decodeUnknownOption(Counted)

const countMax = 100

/**
 * The number of results that an expression computes from a body; `undefined` if there is no expression or it gives no
 * such number.
 */
export const countOf = (expression: string | undefined, body: unknown): number | undefined => {
  if (expression === undefined) return undefined
  const count = Number(Result.getOrUndefined(evaluate(expression, "price", { body })))
  return Number.isInteger(count) && count >= 1 && count <= countMax ? count : undefined
}

/** Requested results of a stored body; 1 if the model has no `n`. */
export const requestedOf = (body: unknown): number =>
  Option.match(decodeCounted(body), { onNone: () => 1, onSome: ({ n }) => n })
