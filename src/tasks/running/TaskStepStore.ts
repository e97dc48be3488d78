import type { PgClient } from "@effect/sql-pg"
import { DateTime, Effect, Option, Schema } from "effect"
import { Batcher } from "../../db/Batcher.ts"
import { groupCommit, hex, outcomes, retryDeadlock } from "../../db/BatchWrites.ts"
import { DatabaseClock } from "../../db/DatabaseClock.ts"
import { rowsOf, toDate } from "../../db/Rows.ts"
import { retryStore, storeFailures } from "../../db/StoreFailures.ts"
import { ownerDeadSeconds } from "../../domain/limits/Limits.ts"
import { encodeCandidates } from "../../domain/task/Candidate.ts"
import { endWithin } from "../../process/SlotArray.ts"
import type { AttemptStart, StepEnd, TaskStore } from "../TaskStore.ts"

/** Ends of polls are written in groups. The more of them there are, the longer they are gathered. */
const gathered = {
  itemsMax: 512,
  runsMax: 1,
  splitBatch: true,
  intervalMillis: 25,
  intervalMillisPerItem: 1
} as const

/** The time limit of the last write when the process ends. */
const lastWriteMillis = 500

interface PollEnd {
  readonly end: StepEnd
  readonly written: () => void
}

const Row = Schema.Struct({ n: Schema.Int })
const Begun = Schema.Struct({ n: Schema.Int, advance: Schema.Finite })
const isWritten = (row: typeof Row.Type | undefined): boolean => row !== undefined

/** The writes of steps. Writes that arrive together share a commit. */
export const makeSteps = Effect.fnUntraced(function* (sql: PgClient.PgClient) {
  const clock = yield* DatabaseClock
  const begin = yield* Batcher.make({
    ...groupCommit,
    run: Effect.fnUntraced(function* (starts: ReadonlyArray<AttemptStart>) {
      // All starts have the same progress, because they belong to this process
      const progress = starts[0]?.progress
      const at = Option.getOrNull(Option.map(yield* clock.asParameter, toDate))
      const rows = yield* sql`
        SELECT * FROM task_attempts_begin(
          ${sql.json(starts.map(startCall))}, ${progress?.processId ?? null}, ${progress?.seen ?? 0}::float8::bigint,
          coalesce(${at}::timestamptz, clock_timestamp()), ${ownerDeadSeconds}::float8)`.pipe(
        rowsOf(Begun),
        retryDeadlock,
        storeFailures
      )
      for (const { advance } of rows) {
        if (progress !== undefined) progress.seen = Math.max(progress.seen, advance)
      }
      return outcomes(starts, rows, (row) => row !== undefined)
    })
  })
  const write = (ends: ReadonlyArray<StepEnd>) =>
    sql`SELECT * FROM task_steps_end(${sql.json(ends.map(endCall))})`.pipe(
      rowsOf(Row),
      Effect.map((rows) => outcomes(ends, rows, isWritten)),
      retryDeadlock,
      storeFailures
    )
  const end = yield* Batcher.make({ ...groupCommit, run: write })
  const endPoll = yield* Batcher.make({
    ...gathered,
    run: (polls: ReadonlyArray<PollEnd>) =>
      retryStore(write(polls.map(({ end }) => end))).pipe(
        Effect.tap(Effect.sync(() => polls.forEach(({ written }) => written())))
      )
  })
  // If the last write fails, the tasks are claimed once this process is known to have ended
  yield* Effect.addFinalizer(() => endWithin(endPoll.settled, lastWriteMillis))
  return {
    beginAttempt: begin.call,
    endStep: end.call,
    endPoll: (end: StepEnd, written: () => void) => Effect.sync(() => endPoll.add({ end, written }))
  } satisfies Partial<TaskStore["Service"]>
})

const startCall = (start: AttemptStart, n: number) => ({
  n,
  task: start.taskId,
  epoch: start.epoch,
  attempt: start.n,
  vendor: start.vendor,
  account: start.accountId,
  body_hash: hex(start.bodyHash),
  queue: start.queue.name,
  progress: start.showsProgress === true ? 0 : undefined,
  now: DateTime.formatIso(start.now)
})

/** Undefined members are omitted from the JSON and become null in SQL. */
const endCall = ({ attempt, epoch, next, now, pass, progress, taskId }: StepEnd, n: number) => ({
  n,
  task: taskId,
  epoch,
  now: DateTime.formatIso(now),
  attempt: attempt?.n,
  state: attempt?.state,
  handle: attempt?.handle,
  failure: attempt?.failure,
  due: next === undefined ? undefined : DateTime.formatIso(next.dueAt),
  queue: next?.queue.name,
  spacing: next?.queue.spacingMillis === undefined ? undefined : next.queue.spacingMillis / 1000,
  account: next?.accountId,
  inputs: next?.inputs,
  candidates: pass === undefined ? undefined : encodeCandidates(pass.candidates),
  candidate: pass?.candidate,
  progress
})
