import { Effect, Exit } from "effect"

/**
 * Runs `work` for all items, `concurrency` at once. If one fails, the others continue, because an interrupted statement
 * may have been committed; then the first failure is returned.
 */
export const eachToItsEnd = Effect.fnUntraced(function* <A, E, R>(
  items: ReadonlyArray<A>,
  concurrency: number,
  work: (item: A) => Effect.Effect<unknown, E, R>
) {
  const exits = yield* Effect.forEach(items, (item) => Effect.exit(work(item)), { concurrency })
  const failed = exits.find(Exit.isFailure)
  if (failed !== undefined) return yield* Effect.failCause(failed.cause)
})
