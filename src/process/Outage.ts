import { Cause, Effect } from "effect"
import { storeTrouble } from "../db/StoreTrouble.ts"
import { problem, StoreUnavailable } from "../domain/Problem.ts"
import type { Problem } from "../domain/Problem.ts"

/** A series of failed heartbeats: logged once for each reason, and when they succeed again. */
export const makeOutage = () => {
  let failure: StoreUnavailable | undefined
  let logged: string | undefined
  return {
    /** Fails while the process has been silent for some time after a failed heartbeat, or the store does not respond. */
    readyWith: (
      ping: Effect.Effect<void, StoreUnavailable>,
      isSilent: () => boolean
    ): Effect.Effect<void, Problem> =>
      Effect.mapError(
        Effect.suspend(() => (failure !== undefined && isSilent() ? Effect.fail(failure) : ping)),
        (error) => problem(5003, `The store accepts no writes now: ${storeTrouble(error)}`)
      ),
    failed: (cause: Cause.Cause<StoreUnavailable>) => {
      const error = Cause.squash(cause)
      failure = error instanceof StoreUnavailable ? error : new StoreUnavailable({ cause: error })
      const trouble = storeTrouble(failure)
      if (trouble === logged) return Effect.logDebug("The heartbeat failed again", cause)
      logged = trouble
      return Effect.logError(`The heartbeat of this process cannot be written: ${trouble}`, cause)
    },
    ended: Effect.suspend(() => {
      failure = undefined
      if (logged === undefined) return Effect.void
      logged = undefined
      return Effect.logInfo("The heartbeat of this process is written again")
    })
  }
}
