import { Context, DateTime, Effect, Layer, Option } from "effect"
import { Artifacts } from "../../artifacts/Artifacts.ts"
import { Files } from "../../artifacts/files/Files.ts"
import { firstTaskId } from "../../domain/Ids.ts"
import type { TaskId, UserId } from "../../domain/Ids.ts"
import {
  artifactHours,
  erasureGraceMinutes,
  erasureRowsMax,
  erasureSeconds,
  reservationMillis
} from "../../domain/limits/Limits.ts"
import { problem } from "../../domain/Problem.ts"
import type { Problem, StoreUnavailable } from "../../domain/Problem.ts"
import * as Duty from "../../process/heartbeat/Duty.ts"
import { WorkNotifier } from "../../process/signals/WorkNotifier.ts"
import { TaskCompletion } from "../completion/TaskCompletion.ts"
import { TaskStore } from "../TaskStore.ts"
import { UserErasureStore } from "./UserErasureStore.ts"
import type { DeletedUser } from "./UserErasureStore.ts"

/**
 * Deletes users. One transaction ends all access. Passes, repeated until they succeed, then cancel tasks and erase
 * personal data. docs/reference/privacy.md#deletion-of-a-user, ADR 0169.
 */
export class UserErasure extends Context.Service<
  UserErasure,
  {
    /** Fails with 2005. Once it has returned, no process admits a request of this user. */
    readonly delete: (id: UserId) => Effect.Effect<DeletedUser, Problem | StoreUnavailable>
    /** Runs every due pass. If a pass fails, the next call runs it again. */
    readonly erase: Effect.Effect<void, StoreUnavailable>
  }
>()("gateway/tasks/UserErasure") {
  static readonly layer = Layer.effect(
    UserErasure,
    Effect.gen(function* () {
      const store = yield* UserErasureStore
      const pass = yield* makePass
      return UserErasure.of({
        delete: Effect.fn("UserErasure.delete")(function* (id) {
          const deleted = yield* store.delete(id, yield* DateTime.now)
          if (Option.isNone(deleted)) return yield* problem(2005, `There is no user ${id}`)
          // Another process may still admit calls from a reservation, as after the revocation of a key
          if (deleted.value.reserved) yield* Effect.sleep(reservationMillis)
          return deleted.value
        }),
        erase: Effect.gen(function* () {
          const due = yield* store.due(yield* DateTime.now)
          for (const { deletedAt, id } of due) {
            yield* Effect.catchCause(pass(id, deletedAt), (cause) =>
              Effect.logWarning(`The data of the deleted user ${id} could not be erased yet`, cause)
            )
          }
        })
      })
    })
  )

  static readonly layerLoop = Duty.layer(
    { name: "erasure", seconds: erasureSeconds },
    Effect.flatMap(UserErasure, ({ erase }) => erase)
  )
}

/** An artifact is made while its task runs (up to a day) and is kept for a day. */
const artifactsSince = (now: DateTime.Utc): TaskId =>
  firstTaskId(
    Math.max(0, DateTime.toEpochMillis(DateTime.subtract(now, { hours: 2 * artifactHours })))
  )

const makePass = Effect.gen(function* () {
  const store = yield* UserErasureStore
  const tasks = yield* TaskStore
  const completion = yield* TaskCompletion
  const artifacts = yield* Artifacts
  const files = yield* Files
  const notifier = yield* WorkNotifier

  const cancel = Effect.fnUntraced(function* (id: TaskId) {
    const task = yield* tasks.view(id)
    if (Option.isNone(task)) return
    yield* completion.fail(task.value, Option.none(), {
      code: 4004,
      title: "Cancelled",
      detail: ""
    })
    yield* notifier.stopTask(id)
  })

  const inParts = (
    part: (after: string) => Effect.Effect<Option.Option<string>, StoreUnavailable>,
    first: string
  ) =>
    Effect.gen(function* () {
      for (let after = Option.some(first); Option.isSome(after);) after = yield* part(after.value)
    })

  return Effect.fn("UserErasure.pass")(function* (id: UserId, deletedAt: DateTime.Utc) {
    const now = yield* DateTime.now
    const graceEnds = DateTime.add(deletedAt, { minutes: erasureGraceMinutes })
    yield* Effect.forEach(yield* store.unfinishedTasks(id), cancel, { discard: true })
    const areMediaGone = yield* artifacts.remove(yield* store.artifacts(id, artifactsSince(now)))
    const areFilesGone = yield* files.deleteAll(id)
    yield* inParts((after) => store.eraseTasks(id, after, erasureRowsMax), firstTaskId(0))
    yield* inParts((after) => store.eraseDeliveries(id, after, erasureRowsMax), "")
    const isLast = DateTime.isGreaterThanOrEqualTo(now, graceEnds)
    const isDone = areMediaGone && areFilesGone
    const next = isDone && !isLast ? graceEnds : DateTime.add(now, { seconds: erasureSeconds })
    yield* store.end(id, isDone && isLast, next, now)
  })
})
