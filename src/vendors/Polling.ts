import { Duration } from "effect"

/** Timeout of the submit of a polled job; the job is created within this time. */
export const submitTimeout = Duration.seconds(60)

/** The longest poll interval that a vendor can request. */
export const pollIntervalMax = Duration.seconds(60)

/** The progress that a vendor reports, of a job that ends at `of`, in per cent. `undefined` if it is not a number. */
export const percentOf = (reported: unknown, of: number): number | undefined => {
  const isText = typeof reported === "string" && /^\d{1,9}(?:\.\d{0,20})?$/u.test(reported)
  const figure = isText ? Number(reported) : reported
  return typeof figure === "number" && Number.isFinite(figure)
    ? Math.round(Math.min(1, Math.max(0, figure / of)) * 100)
    : undefined
}

/** The wait before the next poll of a job of this age. docs/reference/vendors.md#poll-interval */
export const pollIntervalAtAge = (ageMillis: number): Duration.Duration => {
  if (ageMillis < 60_000) return Duration.millis(2500)
  if (ageMillis < 300_000) return Duration.seconds(5)
  return ageMillis < 900_000 ? Duration.seconds(10) : Duration.seconds(20)
}
