import { Effect } from "effect"

/**
 * Makes work that is repeated unable to fail. The first of several failures in a row is logged as a warning, the others
 * only for debugging: while the store is away, every loop fails at each turn. Returns `undefined` after a failure.
 */
export const warnOnce = (failed: string) => {
  let isFailing = false
  return <A, E, R>(work: Effect.Effect<A, E, R>): Effect.Effect<A | undefined, never, R> =>
    work.pipe(
      Effect.tap(() =>
        Effect.sync(() => {
          isFailing = false
        })
      ),
      Effect.catchCause((cause) => {
        const log = isFailing ? Effect.logDebug : Effect.logWarning
        isFailing = true
        return Effect.as(log(failed, cause), undefined)
      })
    )
}
