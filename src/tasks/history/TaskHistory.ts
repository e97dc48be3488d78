import { Array, Context, DateTime, Effect, Layer, Option, Schema } from "effect"
import { Artifacts } from "../../artifacts/Artifacts.ts"
import type { ArtifactRow } from "../../artifacts/Artifacts.ts"
import { pointerOf } from "../../catalog/FieldFaults.ts"
import { referenceIn } from "../../catalog/media/Media.ts"
import type { ScannedPage } from "../../db/ListScan.ts"
import { ArtifactId } from "../../domain/Ids.ts"
import type { TaskId, UserId } from "../../domain/Ids.ts"
import { problem } from "../../domain/Problem.ts"
import type { Problem, StoreUnavailable } from "../../domain/Problem.ts"
import { Wallet } from "../../wallet/Wallet.ts"
import type { EntryRow } from "../../wallet/Wallet.ts"
import { Deliveries } from "../../webhooks/Deliveries.ts"
import type { TaskDeliveryRow } from "../../webhooks/Deliveries.ts"
import { filterOfText } from "./SearchText.ts"
import { TaskHistoryStore } from "./TaskHistoryStore.ts"
import type { AttemptRow, PastTask, TaskFilter, TaskSummary } from "./TaskHistoryStore.ts"

export type { AttemptRow, TaskFilter, TaskSummary } from "./TaskHistoryStore.ts"

/** The full history of one task. */
export interface History {
  readonly task: PastTask
  readonly attempts: ReadonlyArray<AttemptRow>
  readonly entries: ReadonlyArray<EntryRow>
  /** Deliveries joined with their attempts, ordered by delivery, then by attempt. */
  readonly deliveries: ReadonlyArray<TaskDeliveryRow>
  readonly inputs: ReadonlyArray<KeptInput>
}

/** An inline medium of a request that is still stored. */
export interface KeptInput {
  readonly pointer: string
  readonly artifact: ArtifactRow
  /** A signed URL. */
  readonly url: string
}

/** A user's tasks across all vendors and models. docs/reference/tasks.md#history */
export class TaskHistory extends Context.Service<
  TaskHistory,
  {
    /** Newest first. `text` is an id, or words from the prompt and the metadata. */
    readonly search: (
      userId: UserId,
      filter: TaskFilter & { readonly text?: string | undefined }
    ) => Effect.Effect<ScannedPage<TaskSummary>, StoreUnavailable>
    /** Searches the tasks of all users, newest first. */
    readonly searchAll: (
      filter: TaskFilter
    ) => Effect.Effect<ScannedPage<TaskSummary>, StoreUnavailable>
    /** The tasks with these ids, in any order. */
    readonly some: TaskHistoryStore["Service"]["some"]
    /** Fails with 2005. */
    readonly get: (userId: UserId, id: TaskId) => Effect.Effect<History, Problem | StoreUnavailable>
  }
>()("gateway/tasks/TaskHistory") {
  static readonly layer = Layer.effect(
    TaskHistory,
    Effect.gen(function* () {
      const store = yield* TaskHistoryStore
      const wallet = yield* Wallet
      const deliveries = yield* Deliveries
      const ofText = filterOfText(store)
      const inputsOf = keptInputs(yield* Artifacts)
      return TaskHistory.of({
        search: Effect.fn("TaskHistory.search")(function* (userId, { text, ...filter }) {
          const found = text === undefined ? {} : yield* ofText(userId, text, filter.since)
          return yield* store.search(userId, { ...filter, ...found })
        }),
        searchAll: (filter) => store.search(null, filter),
        some: store.some,
        get: Effect.fn("TaskHistory.get")(function* (userId, id) {
          const task = yield* store.find(userId, id)
          if (Option.isNone(task)) return yield* problem(2005, `There is no task ${id}`)
          return {
            task: task.value,
            attempts: yield* store.attempts(id),
            entries: yield* wallet.entriesOf(userId, id),
            deliveries: yield* deliveries.ofTask(id),
            inputs: yield* inputsOf(task.value)
          }
        })
      })
    })
  )
}

/** Any text in a body may look like a reference, so this checks that the artifact is an input of this task. */
const keptInputs = (artifacts: Artifacts["Service"]) =>
  Effect.fnUntraced(function* (task: PastTask) {
    const now = yield* DateTime.now
    const found = yield* Effect.forEach(artifactsIn(task.body), ({ id, pointer }) =>
      Effect.map(artifacts.find(id), (row) => {
        const kept = Option.filter(row, (it) => isInputOf(it, task, now))
        return Option.map(kept, (artifact): KeptInput => ({
          pointer,
          artifact,
          url: artifacts.urlOf(artifact)
        }))
      })
    )
    return Array.getSomes(found)
  })

const isInputOf = (artifact: ArtifactRow, task: PastTask, now: DateTime.Utc): boolean =>
  artifact.taskId === task.id &&
  artifact.role === "input" &&
  DateTime.isGreaterThan(artifact.expiresAt, now)

const decodeArtifactId = Schema.decodeUnknownOption(ArtifactId)

/** The references in a body that replace inline media: values of fields or elements of lists. */
const artifactsIn = (body: Schema.Json) =>
  textsIn(body).flatMap(({ path, text }) => {
    const id = Option.flatMap(referenceIn(text), decodeArtifactId)
    return Option.isSome(id) ? [{ id: id.value, pointer: pointerOf(path) }] : []
  })

const textsIn = (
  value: Schema.Json,
  path: ReadonlyArray<PropertyKey> = []
): ReadonlyArray<{ readonly path: ReadonlyArray<PropertyKey>; readonly text: string }> => {
  if (typeof value === "string") return [{ path, text: value }]
  if (typeof value !== "object" || value === null || path.length > 1) return []
  return Object.entries(value).flatMap(([name, item]) => textsIn(item, [...path, name]))
}
