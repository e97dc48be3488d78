import { DateTime, Effect, Option } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { Api } from "../../../contract/Api.ts"
import { EndpointId } from "../../../domain/Ids.ts"
import { Deliveries } from "../../../webhooks/Deliveries.ts"
import { Endpoints } from "../../../webhooks/Endpoints.ts"
import type { EndpointHealth, EndpointRow } from "../../../webhooks/Endpoints.ts"
import { SignatureDebug } from "../../../webhooks/SignatureDebug.ts"
import { requireReader, requireUser } from "../../server/access/Authentication.ts"
import { readPage, toPage } from "../Paging.ts"

const utf8 = new TextEncoder()

/** A user's own webhook endpoints. */
export const layer = HttpApiBuilder.group(
  Api,
  "webhookEndpoints",
  Effect.fnUntraced(function* (handlers) {
    const endpoints = yield* Endpoints
    const withHealth = Effect.fnUntraced(function* (row: EndpointRow) {
      const healthOf = yield* endpoints.healthOf([row.id])
      return { ...show(row, yield* DateTime.now), health: showHealth(row, healthOf(row.id)) }
    })
    const deliveries = yield* Deliveries
    const signatures = yield* SignatureDebug
    return handlers.handleAll({
      createWebhookEndpoint: Effect.fnUntraced(function* ({ payload }) {
        const { row, secret } = yield* endpoints.create({
          userId: yield* requireUser,
          url: payload.url,
          events: payload.events,
          description: Option.fromNullishOr(payload.description),
          enabled: payload.enabled ?? true,
          filter: payload.filter ?? null,
          format: payload.format ?? "gateway"
        })
        return { ...show(row, yield* DateTime.now), secret }
      }),
      listWebhookEndpoints: Effect.fnUntraced(function* ({ query }) {
        const userId = yield* requireReader(query)
        const { before, limit } = readPage(query, EndpointId)
        const rows = yield* endpoints.list(userId, { before, limit: limit + 1 })
        const healthOf = yield* endpoints.healthOf(rows.map(({ id }) => id))
        const now = yield* DateTime.now
        return yield* toPage(
          rows,
          limit,
          (row) => row.id,
          (row) => ({ ...show(row, now), health: showHealth(row, healthOf(row.id)) })
        )
      }),
      getWebhookEndpoint: Effect.fnUntraced(function* ({ params, query }) {
        return yield* withHealth(yield* endpoints.get(yield* requireReader(query), params.id))
      }),
      getWebhookEndpointActivity: Effect.fnUntraced(function* ({ params, query }) {
        const hours = yield* endpoints.activityOf(yield* requireReader(query), params.id)
        return {
          hours: hours.map(({ failed, hasMore, hour, succeeded, waiting }) => ({
            hour,
            succeeded,
            failed,
            waiting,
            has_more: hasMore
          }))
        }
      }),
      updateWebhookEndpoint: Effect.fnUntraced(function* ({ params, payload }) {
        return yield* withHealth(yield* endpoints.update(yield* requireUser, params.id, payload))
      }),
      deleteWebhookEndpoint: Effect.fnUntraced(function* ({ params }) {
        yield* endpoints.remove(yield* requireUser, params.id)
      }),
      rotateWebhookEndpoint: Effect.fnUntraced(function* ({ params }) {
        const { row, secret } = yield* endpoints.rotate(yield* requireUser, params.id)
        return { ...show(row, yield* DateTime.now), secret }
      }),
      testWebhookEndpoint: Effect.fnUntraced(function* ({ params }) {
        const sent = yield* endpoints.test(yield* requireUser, params.id)
        return { event_id: sent.eventId, delivery_id: sent.deliveryId }
      }),
      recoverWebhookEndpoint: Effect.fnUntraced(function* ({ params, payload }) {
        const userId = yield* requireUser
        const { hasMore, recovered } = yield* deliveries.recover(userId, params.id, payload.since)
        return { recovered, has_more: hasMore }
      }),
      debugWebhookSignature: Effect.fnUntraced(function* ({ params, payload }) {
        return yield* signatures.explain(yield* requireUser, params.id, {
          headers: payload.headers,
          body: payload.body_base64 ?? utf8.encode(payload.body ?? ""),
          secret: Option.fromUndefinedOr(payload.secret),
          receivedAt: Option.fromUndefinedOr(payload.received_at)
        })
      })
    })
  })
)

/** The endpoint with only a preview of its secret: the last four characters. */
const show = (row: EndpointRow, now: DateTime.Utc) => ({
  id: row.id,
  url: row.url,
  events: row.events,
  format: row.format,
  description: row.description,
  enabled: row.enabled,
  filter: row.filter,
  secret_preview: row.secretPreview,
  old_secret_expires_at:
    row.previousSecretUntil !== null && DateTime.isGreaterThan(row.previousSecretUntil, now)
      ? row.previousSecretUntil
      : null,
  created_at: row.createdAt,
  updated_at: row.updatedAt
})

const showHealth = (row: EndpointRow, { failedAttempts, lastAttempt }: EndpointHealth) => {
  const failing_since = row.failingSince
  if (lastAttempt === undefined) {
    return { status: "unknown" as const, failed_attempts: 0, failing_since, last_attempt: null }
  }
  const { failure, startedAt, status } = lastAttempt
  return {
    status: failure === null ? ("healthy" as const) : ("failing" as const),
    failed_attempts: failedAttempts,
    failing_since,
    last_attempt: { started_at: startedAt, status, failure }
  }
}
