import { Cause, Effect } from "effect"
import { storeRefusals } from "../../db/StoreFailures.ts"
import { storeTrouble } from "../../db/StoreTrouble.ts"
import { problem, StoreUnavailable } from "../../domain/Problem.ts"
import type { Problem } from "../../domain/Problem.ts"

const heartbeat = {
  begins: "The heartbeat of this process cannot be written",
  ends: "The heartbeat of this process is written again"
}
/** When the disk fills up, new rows are refused first and the heartbeat last. */
const otherWrites = { begins: "The store refuses writes", ends: "The store accepts writes again" }

/** Logs failed heartbeats and other refused statements once per reason, and logs when writes succeed again. */
export const makeOutage = () => {
  let failure: StoreUnavailable | undefined
  let what = heartbeat
  let logged: string | undefined
  let tried = storeRefusals().count
  /** Why the store refused statements between the last two heartbeats although it accepts writes. */
  let refused: string | undefined
  const report = (of: typeof heartbeat, error: unknown, cause: Cause.Cause<StoreUnavailable>) => {
    what = of
    failure = error instanceof StoreUnavailable ? error : new StoreUnavailable({ cause: error })
    const trouble = storeTrouble(failure)
    if (trouble === logged) return Effect.logDebug("The store failed again", cause)
    logged = trouble
    return Effect.logError(`${of.begins}: ${trouble}`, cause)
  }
  const ended = Effect.suspend(() => {
    failure = undefined
    if (logged === undefined) return Effect.void
    logged = undefined
    return Effect.logInfo(what.ends)
  })
  return {
    /**
     * Fails while writes are refused, while the process has been silent for some time after a failed heartbeat, or if
     * the store does not respond.
     */
    readyWith: (
      ping: Effect.Effect<void, StoreUnavailable>,
      isSilent: () => boolean
    ): Effect.Effect<void, Problem> =>
      Effect.mapError(
        Effect.suspend(() =>
          failure !== undefined && (what === otherWrites || isSilent())
            ? Effect.fail(failure)
            : ping
        ),
        (error) => problem(5003, `The store accepts no writes now: ${storeTrouble(error)}`)
      ),
    failed: (cause: Cause.Cause<StoreUnavailable>) => report(heartbeat, Cause.squash(cause), cause),
    /**
     * Call when the heartbeat has been written. If other statements were refused since, tries to write until the store
     * accepts it.
     */
    written: (tryToWrite: Effect.Effect<void, StoreUnavailable>) =>
      Effect.suspend(() => {
        const { count, last } = storeRefusals()
        if (count === tried) {
          refused = undefined
          return ended
        }
        const accepted = Effect.suspend(() => {
          tried = count
          // The outage that ends now was logged with its reason
          if (logged !== undefined) return ended
          const before = refused
          refused = storeTrouble(last)
          return refused === before
            ? Effect.void
            : Effect.logWarning(`The store refused a statement: ${refused}`, last)
        })
        return Effect.matchCauseEffect(tryToWrite, {
          onSuccess: () => accepted,
          onFailure: (cause) => {
            const error = Cause.squash(cause)
            // Otherwise the role may not create temporary tables, so a trial write is not possible
            return error instanceof StoreUnavailable ? report(otherWrites, error, cause) : accepted
          }
        })
      })
  }
}
