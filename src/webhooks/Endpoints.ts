import { Context, DateTime, Effect, Layer, Option } from "effect"
import type { DeliveryType } from "../domain/Event.ts"
import { makeEndpointId, makeTaskId } from "../domain/Ids.ts"
import type { DeliveryId, EndpointId, EventId, UserId } from "../domain/Ids.ts"
import {
  webhookActivity,
  webhookEndpointsPerUserMax,
  webhookHealth
} from "../domain/limits/Limits.ts"
import type { PageRequest } from "../domain/PageRequest.ts"
import { invalid, problem } from "../domain/Problem.ts"
import type { Problem, StoreUnavailable } from "../domain/Problem.ts"
import { taskResult } from "../domain/task/TaskBody.ts"
import { formatFaults } from "../domain/Webhook.ts"
import type { EndpointFilter, WebhookFormat } from "../domain/Webhook.ts"
import { Secrets } from "../process/secrets/Secrets.ts"
import { WorkNotifier } from "../process/signals/WorkNotifier.ts"
import { RequestQuotas } from "../users/RequestQuotas.ts"
import { DeliveryStore } from "./DeliveryStore.ts"
import { EndpointStore } from "./EndpointStore.ts"
import type { EndpointAttempt, EndpointChange, EndpointHour, EndpointRow } from "./EndpointStore.ts"
import { testEvent } from "./Events.ts"
import { makeSecret, overlapEnd } from "./WebhookSecrets.ts"
import { makeUrlCheck, urlRefused } from "./WebhookUrl.ts"

export type { EndpointRow } from "./EndpointStore.ts"

/** An endpoint with its secret, which only create and rotate return. */
export interface EndpointWithSecret {
  readonly row: EndpointRow
  readonly secret: string
}

/** The outcomes of the latest attempts at an endpoint. docs/reference/webhooks.md#health */
export interface EndpointHealth {
  /** Failed attempts since the last success, up to `webhookHealth.attemptsMax`. */
  readonly failedAttempts: number
  readonly lastAttempt: EndpointAttempt | undefined
}

export interface EndpointFields {
  readonly userId: UserId
  readonly url: string
  readonly events: ReadonlyArray<DeliveryType>
  readonly description: Option.Option<string>
  readonly enabled: boolean
  readonly filter: EndpointFilter | null
  readonly format: WebhookFormat
}

type Failure = Problem | StoreUnavailable

/** Webhook endpoints of a user. docs/reference/webhooks.md#endpoints */
export class Endpoints extends Context.Service<
  Endpoints,
  {
    /** Fails with 2011 (URL) or 2010 (too many endpoints). */
    readonly create: (fields: EndpointFields) => Effect.Effect<EndpointWithSecret, Failure>
    readonly get: (userId: UserId, id: EndpointId) => Effect.Effect<EndpointRow, Failure>
    readonly list: (
      userId: UserId,
      page: PageRequest
    ) => Effect.Effect<ReadonlyArray<EndpointRow>, StoreUnavailable>
    readonly healthOf: (
      ids: ReadonlyArray<EndpointId>
    ) => Effect.Effect<(id: EndpointId) => EndpointHealth, StoreUnavailable>
    /** Counts of its deliveries in the current hour and the 23 hours before. Fails with 2005. */
    readonly activityOf: (
      userId: UserId,
      id: EndpointId
    ) => Effect.Effect<ReadonlyArray<EndpointHour>, Failure>
    readonly update: (
      userId: UserId,
      id: EndpointId,
      change: EndpointChange
    ) => Effect.Effect<EndpointRow, Failure>
    readonly remove: (userId: UserId, id: EndpointId) => Effect.Effect<void, Failure>
    readonly rotate: (userId: UserId, id: EndpointId) => Effect.Effect<EndpointWithSecret, Failure>
    /** Sends the synthetic `task.succeeded`. Fails with 1201 if it was sent too often. */
    readonly test: (
      userId: UserId,
      id: EndpointId
    ) => Effect.Effect<{ readonly eventId: EventId; readonly deliveryId: DeliveryId }, Failure>
  }
>()("gateway/webhooks/Endpoints") {
  static readonly layer = Layer.effect(
    Endpoints,
    Effect.gen(function* () {
      const store = yield* EndpointStore
      const secrets = yield* Secrets
      const acceptUrl = yield* makeAcceptUrl

      const known = (id: EndpointId, row: Option.Option<EndpointRow>) =>
        Effect.mapError(Effect.fromOption(row), () => noEndpoint(id))

      const get = Effect.fn("Endpoints.get")(function* (userId: UserId, id: EndpointId) {
        return yield* known(id, yield* store.find(userId, id))
      })

      return Endpoints.of({
        get,
        list: store.list,
        healthOf: Effect.fn("Endpoints.healthOf")(function* (ids) {
          const since = DateTime.subtract(yield* DateTime.now, { days: webhookHealth.days })
          const attempts = yield* store.latestAttempts(ids, since, webhookHealth.attemptsMax)
          const byEndpoint = Map.groupBy(attempts, ({ endpointId }) => endpointId)
          return (id) => healthOfAttempts(byEndpoint.get(id) ?? [])
        }),
        activityOf: Effect.fn("Endpoints.activityOf")(function* (userId, id) {
          yield* get(userId, id)
          const { deliveriesPerHourMax, hours } = webhookActivity
          const current = DateTime.startOf(yield* DateTime.now, "hour")
          const from = DateTime.subtract(current, { hours: hours - 1 })
          return yield* store.hours(id, from, hours, deliveriesPerHourMax)
        }),
        create: Effect.fn("Endpoints.create")(function* ({ description, ...fields }) {
          yield* acceptFormat(fields)
          yield* acceptUrl(fields.url)
          const now = yield* DateTime.now
          const { encrypted, preview, text } = makeSecret(secrets)
          const created = yield* store.create(
            {
              ...fields,
              id: makeEndpointId(DateTime.toEpochMillis(now)),
              description: Option.getOrNull(description),
              secret: encrypted,
              secretPreview: preview,
              now
            },
            webhookEndpointsPerUserMax
          )
          if (Option.isNone(created)) {
            return yield* problem(
              2010,
              `A user has at most ${webhookEndpointsPerUserMax} webhook endpoints: delete one first`
            )
          }
          return { row: created.value, secret: text }
        }),
        update: Effect.fn("Endpoints.update")(function* (userId, id, change) {
          const { events, format, url } = change
          if (url !== undefined) yield* acceptUrl(url)
          const accept = events === undefined && format === undefined ? undefined : acceptFormat
          const now = yield* DateTime.now
          return yield* known(id, yield* store.update(userId, id, change, now, accept))
        }),
        remove: Effect.fn("Endpoints.remove")(function* (userId, id) {
          const removed = yield* store.remove(userId, id, yield* DateTime.now)
          if (!removed) return yield* noEndpoint(id)
        }),
        rotate: Effect.fn("Endpoints.rotate")(function* (userId, id) {
          const now = yield* DateTime.now
          const { encrypted, preview, text } = makeSecret(secrets)
          const rotated = yield* store.rotate(userId, id, encrypted, preview, overlapEnd(now), now)
          return { row: yield* known(id, rotated), secret: text }
        }),
        test: yield* makeTest(get)
      })
    })
  )
}

export const noEndpoint = (id: EndpointId): Problem =>
  problem(2005, `There is no webhook endpoint ${id}`)

/** Expects the attempts newest first. */
const healthOfAttempts = (attempts: ReadonlyArray<EndpointAttempt>): EndpointHealth => {
  const lastSuccess = attempts.findIndex(({ failure }) => failure === null)
  return {
    failedAttempts: lastSuccess < 0 ? attempts.length : lastSuccess,
    lastAttempt: attempts[0]
  }
}

/** Fails with 2001 if OpenAI's events are requested in a format other than `openai`. */
const acceptFormat = ({ events, format }: Pick<EndpointFields, "events" | "format">) => {
  const faults = formatFaults(format, events)
  return faults.length === 0
    ? Effect.void
    : invalid(faults.map(({ detail, n }) => ({ pointer: `#/events/${n}`, detail })))
}

/** Accepts a URL that passes the check. Fails with 2011. */
const makeAcceptUrl = Effect.map(
  makeUrlCheck,
  (checkUrl) => (url: string) =>
    Effect.flatMap(
      checkUrl(url),
      Option.match({
        onNone: () => Effect.void,
        onSome: (detail) => urlRefused({ pointer: "#/url", detail })
      })
    )
)

const makeTest = Effect.fnUntraced(function* (
  get: (userId: UserId, id: EndpointId) => Effect.Effect<EndpointRow, Failure>
) {
  const deliveries = yield* DeliveryStore
  const quotas = yield* RequestQuotas
  const notifier = yield* WorkNotifier
  return Effect.fn("Endpoints.test")(function* (userId: UserId, id: EndpointId) {
    const endpoint = yield* get(userId, id)
    if (!endpoint.enabled) {
      return yield* problem(2010, "The endpoint is disabled: enable it before testing it")
    }
    yield* quotas.takeTestEvent(userId, id)
    const now = yield* DateTime.now
    const payload = taskResult(
      {
        id: makeTaskId(DateTime.toEpochMillis(now)),
        status: "completed",
        createdAt: now,
        updatedAt: now,
        error: null,
        result: ["https://example.com/test.png"],
        metadata: null
      },
      "images"
    )
    const event = testEvent({ vendor: "service", model: "test" }, payload, now)
    const deliveryId = yield* deliveries.publishTo(
      userId,
      id,
      { ...event, type: "task.succeeded" },
      now
    )
    yield* notifier.notifyEndpoints([id])
    return { eventId: event.id, deliveryId }
  })
})
