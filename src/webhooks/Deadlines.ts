import { Duration, Effect, FiberSet } from "effect"
import type { Clock, Scope } from "effect"
import { LinkedList } from "./LinkedList.ts"

interface Entry {
  readonly atNanos: bigint
  readonly expire: () => void
}

/** Calls `expire` when the bound is over, unless what it answers is called before. */
export type Deadline = (clock: Clock.Clock, expire: () => void) => () => void

/**
 * One bound for many attempts. All have the same, so that the one that began first ends first, and one
 * fiber that sleeps serves them all; a race of fibers for each attempt costs several times as much.
 * Time is that of the clock given: in tests the test's.
 */
export const makeDeadlines = Effect.fnUntraced(function* (
  bound: Duration.Duration
): Effect.fn.Return<Deadline, never, Scope.Scope> {
  const run = yield* FiberSet.makeRuntime()
  const boundNanos = BigInt(Math.round(Duration.toMillis(bound) * 1e6))
  /** Oldest first; a clock that has a list here has a fiber. */
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
    const node = entries.add({ atNanos: clock.monotonicTimeNanosUnsafe() + boundNanos, expire })
    if (!watched.has(clock)) {
      watched.set(clock, entries)
      run(watch(clock, entries))
    }
    return () => entries.remove(node)
  }
})
