import { Effect, Schema } from "effect"

/** The shown parts of the management API. docs/reference/tasks.md#history */
const Text = Schema.String
const Attempt = Schema.Struct({ n: Schema.Int, state: Text, started_at: Text })
const Entry = Schema.Struct({
  seq: Schema.Int,
  kind: Text,
  amount: Text,
  settled_after: Text,
  held_after: Text,
  task_id: Schema.NullOr(Text),
  created_at: Text
})
const Delivery = Schema.Struct({
  type: Text,
  status: Text,
  endpoint_id: Text,
  created_at: Text,
  attempts: Schema.Array(
    Schema.Struct({
      started_at: Schema.NullOr(Text),
      status: Schema.NullOr(Schema.Int),
      failure: Schema.NullOr(Text)
    })
  )
})
const Task = Schema.Struct({
  id: Text,
  vendor: Text,
  model: Text,
  status: Text,
  error: Schema.NullOr(Schema.Struct({ code: Schema.Int, detail: Text })),
  receipt: Schema.Struct({ held: Text, captured: Text }),
  moves: Schema.Array(Schema.Struct({ status: Text, at: Text })),
  attempts: Schema.Array(Attempt),
  deliveries: Schema.Array(Delivery)
})
type Task = typeof Task.Type

const Id = Schema.Struct({ id: Text })
const pageOf = <S extends Schema.Constraint>(item: S) => Schema.Struct({ data: Schema.Array(item) })
const decodeTasks = Schema.decodeUnknownEffect(pageOf(Id))
const decodeTask = Schema.decodeUnknownEffect(Task)
const decodeEntries = Schema.decodeUnknownEffect(pageOf(Entry))

/** The largest page of the management API. Older tasks and entries are not shown. */
const page = "limit=100"

/**
 * The newest 100 tasks and 100 ledger entries as text that is equal in every run: ids are numbered in the order of
 * creation, and times count from `startedAt` (Unix time in milliseconds).
 */
export const makeSnapshot = (
  read: (path: string) => Effect.Effect<unknown>,
  startedAt: number
): Effect.Effect<string> =>
  Effect.gen(function* () {
    const { data: newest } = yield* Effect.flatMap(read(`/manage/v1/tasks?${page}`), decodeTasks)
    const { data: entries } = yield* Effect.flatMap(
      read(`/manage/v1/wallet/entries?${page}`),
      decodeEntries
    )
    // Ids of the same millisecond have no order, but their holds do
    const held = entries.toReversed().map(({ task_id }) => task_id)
    const ids = newest
      .map(({ id }) => id)
      .toReversed()
      .toSorted((a, b) => held.indexOf(a) - held.indexOf(b))
    const tasks = yield* Effect.forEach(ids, (id) =>
      Effect.flatMap(read(`/manage/v1/tasks/${id}`), decodeTask)
    )
    const at = (time: string) => `+${((Date.parse(time) - startedAt) / 1000).toFixed(3)} s`
    const ledger = entries.toReversed().map((entry) => {
      const task = entry.task_id === null ? "" : ` task ${ids.indexOf(entry.task_id) + 1}`
      const after = `settled ${entry.settled_after}, held ${entry.held_after}`
      return `  ${at(entry.created_at)} ${entry.kind} ${entry.amount}${task}: ${after}`
    })
    const endpoints = [
      ...new Set(tasks.flatMap(({ deliveries }) => deliveries.map((it) => it.endpoint_id)))
    ]
    return [
      ...tasks.flatMap((task, index) => linesOf(task, index + 1, at, endpoints)),
      "ledger",
      ...ledger
    ].join("\n")
  }).pipe(Effect.orDie)

const linesOf = (
  task: Task,
  n: number,
  at: (time: string) => string,
  endpoints: ReadonlyArray<string>
): ReadonlyArray<string> => {
  const { error, model, receipt, status, vendor } = task
  const money = `held ${receipt.held}, captured ${receipt.captured}`
  const lines = [
    ...task.moves.map((move) => ({ time: move.at, text: move.status })),
    ...task.attempts.map((it) => ({ time: it.started_at, text: `attempt ${it.n} ${it.state}` })),
    ...task.deliveries.flatMap((delivery) =>
      delivery.attempts.map((attempt, index) => {
        const to = `endpoint ${endpoints.indexOf(delivery.endpoint_id) + 1}`
        const outcome = attempt.failure ?? attempt.status ?? "due"
        return {
          time: attempt.started_at ?? delivery.created_at,
          text: `${delivery.type} to ${to}, attempt ${index + 1}: ${outcome}`
        }
      })
    )
  ]
  return [
    `task ${n} ${vendor}/${model}: ${status}, ${money}`,
    ...(error === null ? [] : [`  error ${error.code}: ${error.detail}`]),
    // The sort is stable, so lines with equal times keep the order above
    ...lines
      .sort((one, other) => Date.parse(one.time) - Date.parse(other.time))
      .map(({ text, time }) => `  ${at(time)} ${text}`)
  ]
}
