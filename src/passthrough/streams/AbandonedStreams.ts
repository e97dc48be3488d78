import { Effect } from "effect"
import type { Clock, Duration, Scope } from "effect"
import { makeDeadlines } from "../../domain/Deadlines.ts"
import type { UserId } from "../../domain/Ids.ts"
import { abandonedStreamBytesMax, abandonedStreamsPerUserMax } from "../../domain/limits/Limits.ts"
import type { Drain } from "../../process/Drain.ts"

/** A stream that is still read after its client has left. */
export interface AbandonedStream {
  /** Reports received bytes. Calls `stop` once there are too many, or once all usage figures have arrived. */
  readonly received: (bytes: number, isFinal: boolean) => void
  /** The stream has ended. */
  readonly end: () => void
}

/** The abandoned streams that this process still reads. docs/reference/passthrough.md#streams-left-by-their-client */
export interface AbandonedStreams {
  /**
   * Calls `stop` at its limit of time or bytes, or when the process stops; `undefined` if the process is already
   * stopping.
   */
  readonly begin: (user: UserId, stop: () => void) => AbandonedStream | undefined
  /** Whether the user has abandoned so many streams that new calls must wait for some to end. */
  readonly isFull: (user: UserId) => boolean
}

export const makeAbandonedStreams = Effect.fnUntraced(function* (
  timeout: Duration.Duration,
  clock: Clock.Clock,
  drain: Drain["Service"]
): Effect.fn.Return<AbandonedStreams, never, Scope.Scope> {
  const expireAfterTimeout = yield* makeDeadlines(timeout)
  const stops = new Set<() => void>()
  const countByUser = new Map<UserId, number>()
  let isClosed = false

  const stopAll = Effect.sync(() => {
    isClosed = true
    for (const stop of stops) stop()
  })
  yield* Effect.forkScoped(Effect.andThen(drain.begun, stopAll))
  yield* Effect.addFinalizer(() => stopAll)

  const count = (user: UserId, by: number) => {
    const left = (countByUser.get(user) ?? 0) + by
    if (left === 0) countByUser.delete(user)
    else countByUser.set(user, left)
  }

  return {
    begin: (user, stop) => {
      if (isClosed || drain.isDraining()) return undefined
      let bytesLeft = abandonedStreamBytesMax
      const cancelDeadline = expireAfterTimeout(clock, stop)
      stops.add(stop)
      count(user, 1)
      return {
        received: (bytes, isFinal) => {
          bytesLeft -= bytes
          if (isFinal || bytesLeft < 0) stop()
        },
        end: () => {
          if (!stops.delete(stop)) return
          cancelDeadline()
          count(user, -1)
        }
      }
    },
    isFull: (user) =>
      countByUser.size > 0 && (countByUser.get(user) ?? 0) >= abandonedStreamsPerUserMax
  }
})
