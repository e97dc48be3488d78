import { AdmissionLimiter } from "../../src/process/admission/AdmissionLimiter.ts"

/** Milliseconds. */
export const delayMillisMax = 10

/** The same bounds for a turn of the loop and for the store. */
export const limiterOf = (bounds: {
  readonly least: number
  readonly usual: number
  readonly most: number
}) =>
  new AdmissionLimiter({
    turn: { ...bounds, delayMillisMax },
    store: { ...bounds, delayMillisMax }
  })
