import { Duration, Effect, Schema } from "effect"
import type { Handle } from "./VendorClient.ts"
import { VendorError } from "./VendorError.ts"

/** Timeout of the submit of a polled job; the job is created within this time. */
export const submitTimeout = Duration.seconds(60)

/** The longest poll interval that a vendor can request. */
export const pollIntervalMax = Duration.seconds(60)

/** Reads the handles that an adapter stored with its jobs. */
export const handleReader = <S extends Schema.ConstraintDecoder<unknown>>(
  schema: S,
  vendor: string
) => {
  const decode = Schema.decodeUnknownOption(schema)
  return (handle: Handle): Effect.Effect<S["Type"], VendorError> =>
    Effect.mapError(
      Effect.fromOption(decode(handle)),
      () => new VendorError({ class: "LOST", message: `The job's handle is not ${vendor}'s` })
    )
}

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

/** The wait before the next poll of a batch of this age. Batches take up to a day. */
export const batchPollIntervalAtAge = (ageMillis: number): Duration.Duration =>
  ageMillis > 3_600_000 ? pollIntervalMax : pollIntervalAtAge(ageMillis)
