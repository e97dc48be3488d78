import type { Rate } from "../VendorClient.ts"

/** Submits of one model: vendors.md, finding 3 and A1, Limits. */
const submits: ReadonlyArray<{ models: RegExp; calls: number; perMillis: number }> = [
  { models: /^qwen-image(?:-edit)?-max/u, calls: 2, perMillis: 60_000 },
  { models: /kf2v/u, calls: 2, perMillis: 1000 },
  { models: /^wan2\.5-(?:t2i|i2i)/u, calls: 5, perMillis: 1000 }
]

/** 20 questions a second over all tasks of the account; submits by model. */
export const rateOf =
  (accountId: string) =>
  (act: "submit" | "poll", upstreamModel: string): Rate | undefined => {
    if (act === "poll") return { key: `${accountId}/polls`, calls: 20, perMillis: 1000 }
    const row = submits.find(({ models }) => models.test(upstreamModel))
    return row === undefined
      ? undefined
      : { key: `${accountId}/submits/${upstreamModel}`, calls: row.calls, perMillis: row.perMillis }
  }
