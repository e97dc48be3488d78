import { holdTokens } from "../../catalog/Price.ts"
import type { TokenPrice } from "../../catalog/Price.ts"
import type { ToolUses } from "../../catalog/ToolUses.ts"
import { zero } from "../../domain/Credits.ts"
import type { Credits } from "../../domain/Credits.ts"

/** The most tokens that a model can read and write in a call, with its price. */
export interface CostBound {
  readonly price: TokenPrice
  readonly inputTokens: number
  readonly outputTokens: number
  readonly keepsLong: boolean
  readonly tools: ToolUses | undefined
}

/** The size of a slice in tokens of at least one byte: about 1,000 tokens of English text. */
export const sliceTokens = 4096

/** The maximum cost at any of these models, if at most `outputTokens` of output pass. */
export const holdOf = (bounds: ReadonlyArray<CostBound>, outputTokens = Infinity): Credits =>
  bounds.reduce<Credits>((most, bound) => {
    const output = Math.min(outputTokens, bound.outputTokens)
    const hold = holdTokens(bound.price, bound.inputTokens, output, bound.keepsLong, bound.tools)
    return hold > most ? hold : most
  }, zero)

/**
 * The slices of a stream whose output is visible as it passes, so that its hold can grow with it. ADR 0306,
 * docs/reference/wallet.md#holds-of-streams
 */
export class OutputSlices {
  readonly #bounds: ReadonlyArray<CostBound>
  /** The hold that includes the first slice of output. */
  readonly first: Credits

  constructor(bounds: ReadonlyArray<CostBound>) {
    this.#bounds = bounds
    this.first = this.holdFor(sliceTokens)
  }

  /** The maximum cost of the call as long as at most this much output has passed. */
  holdFor(outputTokens: number): Credits {
    return holdOf(this.#bounds, outputTokens)
  }

  /** Whether the output cannot exceed this amount. */
  isAll(outputTokens: number): boolean {
    return this.#bounds.every((bound) => outputTokens >= bound.outputTokens)
  }
}

/** `undefined` if the first slice already covers the maximum cost of the call. */
export const slicesOf = (bounds: ReadonlyArray<CostBound>): OutputSlices | undefined => {
  const slices = new OutputSlices(bounds)
  return slices.isAll(sliceTokens) ? undefined : slices
}
