import { AdmissionLimiter } from "../../src/process/admission/AdmissionLimiter.ts"

/** In milliseconds. */
export const delayMillisMax = 10

/** A limiter with the same bounds for turns of the loop and for the store. */
export const limiterOf = (bounds: {
  readonly least: number
  readonly usual: number
  readonly most: number
}) =>
  new AdmissionLimiter({
    turn: { ...bounds, delayMillisMax },
    store: { ...bounds, delayMillisMax }
  })
