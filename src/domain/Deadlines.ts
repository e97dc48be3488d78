import { Duration, Effect, FiberSet } from "effect"
import type { Clock, Scope } from "effect"
import { LinkedList } from "./shares/LinkedList.ts"

interface Entry {
  readonly atNanos: bigint
  readonly expire: () => void
}

/** Calls `expire` after the timeout, unless the returned function is called first. */
export type Deadline = (clock: Clock.Clock, expire: () => void) => () => void

/**
 * One timeout for many attempts. Because all have the same timeout, the first to start is the first to expire, and one
 * sleeping fiber serves them all. A race of fibers for each attempt costs several times as much. The clock is a
 * parameter, so that tests can use their own.
 */
export const makeDeadlines = Effect.fnUntraced(function* (
  timeout: Duration.Duration
): Effect.fn.Return<Deadline, never, Scope.Scope> {
  const run = yield* FiberSet.makeRuntime()
  const timeoutNanos = BigInt(Math.round(Duration.toMillis(timeout) * 1e6))
  /** Oldest entry first. Each clock with a list has a running fiber. */
  const watched = new Map<Clock.Clock, LinkedList<Entry>>()

  const watch = (clock: Clock.Clock, entries: LinkedList<Entry>): Effect.Effect<void> =>
    Effect.suspend(() => {
      const oldest = entries.first
      if (oldest === undefined) {
        watched.delete(clock)
        return Effect.void
      }
      const leftNanos = oldest.value.atNanos - clock.monotonicTimeNanosUnsafe()
      if (leftNanos > 0n) {
        return Effect.andThen(clock.sleep(Duration.nanos(leftNanos)), watch(clock, entries))
      }
      entries.remove(oldest)
      oldest.value.expire()
      return watch(clock, entries)
    })

  return (clock, expire) => {
    const entries = watched.get(clock) ?? new LinkedList<Entry>()
    const node = entries.add({ atNanos: clock.monotonicTimeNanosUnsafe() + timeoutNanos, expire })
    if (!watched.has(clock)) {
      watched.set(clock, entries)
      run(watch(clock, entries))
    }
    return () => entries.remove(node)
  }
})
