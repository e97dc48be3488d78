import type { Rate, SlotLimit } from "../VendorClient.ts"

interface ModelLimits {
  readonly models: RegExp
  /** Submits within `perMillis`. */
  readonly calls: number
  readonly perMillis: number
  /** Jobs at once, where the vendor documents a limit. */
  readonly concurrent?: number
}

/** Limits by model. docs/reference/vendors.md#dashscope-rates */
const limits: ReadonlyArray<ModelLimits> = [
  { models: /^qwen-image(?:-edit)?-max/u, calls: 2, perMillis: 60_000 },
  { models: /kf2v/u, calls: 2, perMillis: 1000, concurrent: 2 },
  { models: /^wan2\.5-(?:t2i|i2i)/u, calls: 5, perMillis: 1000, concurrent: 5 }
]

const limitsOf = (upstreamModel: string) => limits.find(({ models }) => models.test(upstreamModel))

/** 20 polls a second for the account; submits by model. */
export const rateOf =
  (accountId: string) =>
  (act: "submit" | "poll", upstreamModel: string): Rate | undefined => {
    if (act === "poll") return { key: `${accountId}/polls`, calls: 20, perMillis: 1000 }
    const row = limitsOf(upstreamModel)
    return row === undefined
      ? undefined
      : { key: `${accountId}/submits/${upstreamModel}`, calls: row.calls, perMillis: row.perMillis }
  }

/** Jobs of one model at once; a limit of the operator replaces it (ADR 0108). */
export const slotsOf =
  (accountId: string) =>
  (upstreamModel: string): SlotLimit | undefined => {
    const max = limitsOf(upstreamModel)?.concurrent
    return max === undefined ? undefined : { line: `${accountId}/${upstreamModel}`, max }
  }
