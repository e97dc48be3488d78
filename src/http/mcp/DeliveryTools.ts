import { DateTime, Effect, Option, Schema } from "effect"
import * as Tool from "effect/ai/Tool"
import { EventType } from "../../domain/Event.ts"
import { DeliveryId, EndpointId, EventId, eventTimeMillis, TaskId } from "../../domain/Ids.ts"
import type { UserId } from "../../domain/Ids.ts"
import { invalid, problem } from "../../domain/Problem.ts"
import { mcpDeliveriesMax } from "../../domain/ShapeLimits.ts"
import { Timestamp } from "../../domain/Task.ts"
import { DeliveryStatus, FailureClass } from "../../domain/Webhook.ts"
import { TaskHistory } from "../../tasks/history/TaskHistory.ts"
import { Deliveries } from "../../webhooks/Deliveries.ts"
import type { DeliveryRow } from "../../webhooks/Deliveries.ts"
import { Endpoints } from "../../webhooks/Endpoints.ts"
import { explain, nextOfDelivery, placeOf } from "./DeliveryWords.ts"
import { bind, readsOnly } from "./Tools.ts"

const Attempt = Schema.Struct({
  seq: Schema.Int,
  started_at: Timestamp,
  ended_at: Schema.NullOr(Timestamp),
  status: Schema.NullOr(Schema.Int),
  failure: Schema.NullOr(FailureClass),
  detail: Schema.NullOr(Schema.String),
  /** The first characters of what the receiver returned: its words, not the gateway's. */
  answer: Schema.NullOr(Schema.String)
})

const Explained = Schema.Struct({
  delivery_id: DeliveryId,
  event_id: EventId,
  event_type: EventType,
  task_id: Schema.NullOr(TaskId),
  endpoint_id: EndpointId,
  /** Without its query; null: the endpoint was deleted. */
  endpoint_url: Schema.NullOr(Schema.String),
  status: DeliveryStatus,
  created_at: Timestamp,
  /** The first characters of what is sent; empty when its event is no longer kept. */
  body: Schema.String,
  attempts: Schema.Array(Attempt),
  next_attempt_at: Schema.NullOr(Timestamp),
  next: Schema.String
})

const definition = Tool.make("explain_delivery", {
  description:
    "Explains in words what happened to webhooks: what was sent when, what came back, and what happens next. Takes the id of a delivery (whd_…), of an event (evt_…) or of a task (a UUID).",
  parameters: Schema.Struct({
    id: Schema.String.annotate({ description: "The id of a delivery, an event or a task" })
  }),
  success: Schema.Struct({
    explanation: Schema.String,
    deliveries: Schema.Array(Explained)
  })
})
  .annotate(Tool.Title, "Explain a webhook delivery")
  .annotateMerge(readsOnly)

const decodeDelivery = Schema.decodeUnknownOption(DeliveryId)
const decodeEvent = Schema.decodeUnknownOption(EventId)
const decodeTask = Schema.decodeUnknownOption(TaskId)

const notAnId = invalid([
  { pointer: "#/id", detail: "Expected the id of a delivery (whd_…), an event (evt_…) or a task" }
])

/** Of what is sent, and of what a receiver returned, which may be anything. */
const charactersMax = 1000

export const makeDeliveryTools = Effect.gen(function* () {
  const explainOne = yield* makeExplainOne
  const idsOf = yield* makeIdsOf
  return [
    bind(definition, "manage", ({ id }, { userId }) =>
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
  return Effect.fnUntraced(function* (userId: UserId, id: DeliveryId) {
    const { attempts, body, row } = yield* deliveries.get(userId, id)
    const endpoint = row.endpointDeleted ? undefined : yield* endpoints.get(userId, row.endpointId)
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

/** The deliveries that an id leads to, all of the same user. Fails with 2001 or 2005. */
const makeIdsOf = Effect.gen(function* () {
  const deliveries = yield* Deliveries
  const history = yield* TaskHistory
  const page = { before: Option.none(), limit: mcpDeliveriesMax }

  const ofEvent = Effect.fnUntraced(function* (userId: UserId, eventId: EventId) {
    const millis = eventTimeMillis(eventId)
    const at = DateTime.makeUnsafe(Option.getOrElse(millis, () => 0))
    const { rows } = yield* deliveries.search(
      userId,
      // Deliveries are made with their event, at its time
      { eventId, since: at, until: DateTime.add(at, { seconds: 1 }) },
      page
    )
    if (rows.length > 0) return oldestFirst(rows)
    return yield* problem(2005, `There is no delivery of an event ${eventId}`)
  })

  const ofTask = Effect.fnUntraced(function* (userId: UserId, taskId: TaskId) {
    const { rows } = yield* deliveries.search(userId, { taskId }, page)
    // Without one, whether the task is there
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
