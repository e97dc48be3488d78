import type { Rate, SlotLimit } from "../VendorClient.ts"

interface ModelLimits {
  readonly models: RegExp
  /** Submits in so long. */
  readonly calls: number
  readonly perMillis: number
  /** Jobs that run at once, where it is documented. */
  readonly concurrent?: number
}

/** Limits of one model: vendors.md, finding 3 and A1, Limits. */
const limits: ReadonlyArray<ModelLimits> = [
  { models: /^qwen-image(?:-edit)?-max/u, calls: 2, perMillis: 60_000 },
  { models: /kf2v/u, calls: 2, perMillis: 1000, concurrent: 2 },
  { models: /^wan2\.5-(?:t2i|i2i)/u, calls: 5, perMillis: 1000, concurrent: 5 }
]

const limitsOf = (upstreamModel: string) => limits.find(({ models }) => models.test(upstreamModel))

/** 20 questions a second over all tasks of the account; submits by model. */
export const rateOf =
  (accountId: string) =>
  (act: "submit" | "poll", upstreamModel: string): Rate | undefined => {
    if (act === "poll") return { key: `${accountId}/polls`, calls: 20, perMillis: 1000 }
    const row = limitsOf(upstreamModel)
    return row === undefined
      ? undefined
      : { key: `${accountId}/submits/${upstreamModel}`, calls: row.calls, perMillis: row.perMillis }
  }

/** Jobs of one model at once; the account's own limit, when it has one, takes its place. */
export const slotsOf =
  (accountId: string) =>
  (upstreamModel: string): SlotLimit | undefined => {
    const max = limitsOf(upstreamModel)?.concurrent
    return max === undefined ? undefined : { line: `${accountId}/${upstreamModel}`, max }
  }
