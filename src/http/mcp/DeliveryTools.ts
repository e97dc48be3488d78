import { DateTime, Effect, Option, Schema } from "effect"
import { explainDelivery } from "../../contract/McpTools.ts"
import type { Explained } from "../../contract/McpTools.ts"
import { DeliveryId, EventId, eventTimeMillis, TaskId } from "../../domain/Ids.ts"
import type { UserId } from "../../domain/Ids.ts"
import { mcpDeliveriesMax } from "../../domain/limits/ShapeLimits.ts"
import { invalid, problem } from "../../domain/Problem.ts"
import { TaskHistory } from "../../tasks/history/TaskHistory.ts"
import { Deliveries } from "../../webhooks/Deliveries.ts"
import type { DeliveryRow } from "../../webhooks/Deliveries.ts"
import { Endpoints } from "../../webhooks/Endpoints.ts"
import { explain, nextOfDelivery, placeOf } from "./DeliveryWords.ts"
import { bind } from "./Tools.ts"

const decodeDelivery = Schema.decodeUnknownOption(DeliveryId)
const decodeEvent = Schema.decodeUnknownOption(EventId)
const decodeTask = Schema.decodeUnknownOption(TaskId)

const notAnId = invalid([
  { pointer: "#/id", detail: "Expected the id of a delivery (whd_…), an event (evt_…) or a task" }
])

/** The maximum number of characters shown of a sent body and of a receiver's response, which may be arbitrary. */
const charactersMax = 1000

export const makeDeliveryTools = Effect.gen(function* () {
  const explainOne = yield* makeExplainOne
  const idsOf = yield* makeIdsOf
  return [
    bind(explainDelivery, "manage", ({ id }, { userId }) =>
      Effect.gen(function* () {
        const ids = yield* idsOf(userId, id)
        const explained = yield* Effect.forEach(ids, (it) => explainOne(userId, it))
        const none = `There is no delivery of ${id}: no enabled endpoint had subscribed when it happened.`
        return {
          value: {
            explanation:
              explained.length === 0 ? none : explained.map(({ words }) => words).join("\n\n"),
            deliveries: explained.map(({ view }) => view)
          }
        }
      })
    )
  ]
})

const makeExplainOne = Effect.gen(function* () {
  const deliveries = yield* Deliveries
  const endpoints = yield* Endpoints
  const targetOf = (userId: UserId, { endpointDeleted, endpointId, webhookUrl }: DeliveryRow) => {
    if (webhookUrl !== null) return Effect.succeed({ url: webhookUrl, enabled: true })
    return endpointDeleted ? Effect.undefined : endpoints.get(userId, endpointId)
  }
  return Effect.fnUntraced(function* (userId: UserId, id: DeliveryId) {
    const { attempts, body, row } = yield* deliveries.get(userId, id)
    const endpoint = yield* targetOf(userId, row)
    const facts = { row, attempts, endpoint }
    const view: typeof Explained.Type = {
      delivery_id: row.id,
      event_id: row.eventId,
      event_type: row.eventType,
      task_id: row.taskId,
      endpoint_id: row.endpointId,
      endpoint_url: endpoint === undefined ? null : placeOf(endpoint.url),
      status: row.status,
      created_at: row.createdAt,
      body: body.slice(0, charactersMax),
      attempts: attempts.map((it) => ({
        seq: it.seq,
        started_at: it.startedAt,
        ended_at: it.endedAt,
        status: it.status,
        failure: it.failure,
        detail: it.detail,
        answer: it.answer?.slice(0, charactersMax) ?? null
      })),
      next_attempt_at: row.nextDueAt,
      next: nextOfDelivery(facts)
    }
    return { words: explain(facts), view }
  })
})

const oldestFirst = (rows: ReadonlyArray<DeliveryRow>) => rows.map(({ id }) => id).toReversed()

/** The deliveries that an id refers to; all belong to one user. Fails with 2001 or 2005. */
const makeIdsOf = Effect.gen(function* () {
  const deliveries = yield* Deliveries
  const history = yield* TaskHistory
  const page = { before: Option.none(), limit: mcpDeliveriesMax }

  const ofEvent = Effect.fnUntraced(function* (userId: UserId, eventId: EventId) {
    const millis = eventTimeMillis(eventId)
    const at = DateTime.makeUnsafe(Option.getOrElse(millis, () => 0))
    const { rows } = yield* deliveries.search(
      userId,
      // Deliveries are created in the same transaction as their event
      { eventId, since: at, until: DateTime.add(at, { seconds: 1 }) },
      page
    )
    if (rows.length > 0) return oldestFirst(rows)
    return yield* problem(2005, `There is no delivery of an event ${eventId}`)
  })

  const ofTask = Effect.fnUntraced(function* (userId: UserId, taskId: TaskId) {
    const { rows } = yield* deliveries.search(userId, { taskId }, page)
    // If there is no delivery, checks that the task exists
    if (rows.length === 0) yield* history.get(userId, taskId)
    return oldestFirst(rows)
  })

  return (userId: UserId, id: string) => {
    const [delivery, event, task] = [decodeDelivery(id), decodeEvent(id), decodeTask(id)]
    if (Option.isSome(delivery)) return Effect.succeed([delivery.value])
    if (Option.isSome(event)) return ofEvent(userId, event.value)
    return Option.isSome(task) ? ofTask(userId, task.value) : Effect.fail(notAnId)
  }
})
