import { Context, DateTime, Effect, Option } from "effect"
import { DatabaseClock } from "../../db/DatabaseClock.ts"
import type { Mark, ProcessAhead } from "../../db/StoreMark.ts"
import { ownerDeadSeconds } from "../../domain/limits/Limits.ts"
import type { News, ProcessStore } from "./ProcessStore.ts"

/** The progress of the store as far as this process knows. docs/standbys.md#how-it-is-noticed */
export interface StoreProgress {
  /** Null if the process writes no heartbeats, as in tests of a store. */
  readonly processId: string | null
  /** The highest committed `advance` that the store has reported. */
  seen: number
}

export const StoreProgress = Context.Reference<StoreProgress>("gateway/process/StoreProgress", {
  defaultValue: () => ({ processId: null, seen: 0 })
})

/**
 * Compares the result of a heartbeat with what the process knew when it sent it, and marks a store that went back in
 * time. No submit begins before the mark is written; if that fails, the next heartbeat tries again.
 */
export const compareWith = (store: ProcessStore["Service"], progress: StoreProgress) =>
  Effect.fnUntraced(function* (found: Omit<News, "at">, ahead: ProcessAhead) {
    if (found.moved) yield* logTimeline(found.timeline)
    if (found.advance <= ahead.seen) {
      const now = yield* (yield* DatabaseClock).asParameter
      yield* logMark(yield* store.markRestored(ahead, Option.getOrNull(now)))
    }
    progress.seen = Math.max(progress.seen, found.advance)
  })

/** Logs the mark. docs/standbys.md#how-it-is-noticed */
const logMark = Option.match({
  onNone: () =>
    Effect.logWarning(
      "The store has gone back in time, as another process has detected and marked"
    ),
  onSome: ({ holdsEnded, tasksInDoubt, trustedUntil }: Mark) => {
    const until = trustedUntil === null ? "" : ` after ${DateTime.formatIso(trustedUntil)}`
    return Effect.logError(
      `The store has gone back in time: what was written${until} is lost. ${tasksInDoubt} unfinished tasks may have ` +
        `been submitted, and are not submitted again blindly; ${holdsEnded} holds of calls and reservations are ` +
        "released. Remedy: repeat what the operator changed in that time, and compare the vendors' bills with `gateway reconcile`"
    )
  }
})

const logTimeline = (timeline: number) =>
  Effect.logWarning(
    `The store continues as timeline ${timeline}: a standby was promoted, or a backup recovered. Paid submits pause for ` +
      `${ownerDeadSeconds} seconds, in which each process compares its progress`
  )
