import { holdTokens } from "../../catalog/Price.ts"
import type { TokenPrice } from "../../catalog/Price.ts"
import type { ToolUses } from "../../catalog/ToolUses.ts"
import { zero } from "../../domain/Credits.ts"
import type { Credits } from "../../domain/Credits.ts"

/** The most that a model can read and write in a call. */
export interface CostBound {
  readonly price: TokenPrice
  readonly inputTokens: number
  readonly outputTokens: number
  readonly keepsLong: boolean
  readonly tools: ToolUses | undefined
}

/** Output that is held for at a time, in tokens of at least one byte: about 1,000 tokens of English text. */
export const sliceTokens = 4096

/** What any of these models can cost at most, if no more than `outputTokens` of output pass. */
export const holdOf = (bounds: ReadonlyArray<CostBound>, outputTokens = Infinity): Credits =>
  bounds.reduce<Credits>((most, bound) => {
    const output = Math.min(outputTokens, bound.outputTokens)
    const hold = holdTokens(bound.price, bound.inputTokens, output, bound.keepsLong, bound.tools)
    return hold > most ? hold : most
  }, zero)

/**
 * A stream whose output is visible as it passes: its hold follows it. ADR 0306,
 * docs/reference/wallet.md#holds-of-streams
 */
export class OutputSlices {
  readonly #bounds: ReadonlyArray<CostBound>
  /** With the first slice of output. */
  readonly first: Credits

  constructor(bounds: ReadonlyArray<CostBound>) {
    this.#bounds = bounds
    this.first = this.holdFor(sliceTokens)
  }

  /** The most that the call costs while no more output than this has passed. */
  holdFor(outputTokens: number): Credits {
    return holdOf(this.#bounds, outputTokens)
  }

  /** No more output than this can come. */
  isAll(outputTokens: number): boolean {
    return this.#bounds.every((bound) => outputTokens >= bound.outputTokens)
  }
}

/** `undefined`: the first slice is all that the call can cost. */
export const slicesOf = (bounds: ReadonlyArray<CostBound>): OutputSlices | undefined => {
  const slices = new OutputSlices(bounds)
  return slices.isAll(sliceTokens) ? undefined : slices
}
