import { PgClient } from "@effect/sql-pg"
import { Array, Context, Effect, Layer, Option, Schema } from "effect"
import type { DateTime } from "effect"
import { audited, named } from "../db/Audited.ts"
import { Bytes, rowOf, rowsOf, Time, toDate } from "../db/Rows.ts"
import { storeFailures } from "../db/StoreFailures.ts"
import { DeliveryType } from "../domain/Event.ts"
import type { EventBody } from "../domain/Event.ts"
import { EndpointId, UserId } from "../domain/Ids.ts"
import type { PageRequest } from "../domain/PageRequest.ts"
import type { Problem } from "../domain/Problem.ts"
import { EndpointFilter, FailureClass, WebhookFormat } from "../domain/Webhook.ts"

/** A webhook endpoint; its secrets are encrypted. */
export class EndpointRow extends Schema.Class<EndpointRow>("EndpointRow")({
  id: EndpointId,
  userId: UserId,
  url: Schema.String,
  events: Schema.Array(DeliveryType),
  description: Schema.NullOr(Schema.String),
  enabled: Schema.Boolean,
  filter: Schema.NullOr(EndpointFilter),
  format: WebhookFormat,
  /** When the first attempt since the last success failed. */
  failingSince: Schema.NullOr(Time),
  secret: Bytes,
  secretPreview: Schema.String,
  previousSecret: Schema.NullOr(Bytes),
  previousSecretUntil: Schema.NullOr(Time),
  createdAt: Time,
  updatedAt: Time
}) {}

/** An attempt that has ended. Lost attempts are excluded, because they say nothing about the endpoint. */
export const EndpointAttempt = Schema.Struct({
  endpointId: EndpointId,
  startedAt: Time,
  status: Schema.NullOr(Schema.Int),
  failure: Schema.NullOr(FailureClass)
})
export type EndpointAttempt = typeof EndpointAttempt.Type

/** Counts of the deliveries to an endpoint that were created within one hour. */
export const EndpointHour = Schema.Struct({
  /** The beginning of the hour. */
  hour: Time,
  succeeded: Schema.Int,
  failed: Schema.Int,
  /** Deliveries that wait for their first or a later attempt. */
  waiting: Schema.Int,
  /** Not all deliveries of the hour were counted. */
  hasMore: Schema.Boolean
})
export type EndpointHour = typeof EndpointHour.Type

export interface NewEndpoint {
  readonly id: EndpointId
  readonly userId: UserId
  readonly url: string
  readonly events: ReadonlyArray<DeliveryType>
  readonly description: string | null
  readonly enabled: boolean
  readonly filter: EndpointFilter | null
  readonly format: WebhookFormat
  readonly secret: Uint8Array
  readonly secretPreview: string
  readonly now: DateTime.Utc
}

export interface EndpointChange {
  readonly url?: string | undefined
  readonly events?: ReadonlyArray<DeliveryType> | undefined
  readonly description?: string | null | undefined
  readonly enabled?: boolean | undefined
  readonly filter?: EndpointFilter | null | undefined
  readonly format?: WebhookFormat | undefined
}

type AcceptChanged = (endpoint: EndpointRow) => Effect.Effect<void, Problem>

/** A failing endpoint that is reported to its user's other endpoints. */
const FailingEndpoint = Schema.Struct({
  id: EndpointId,
  userId: UserId,
  url: Schema.String,
  failingSince: Time
})
export type FailingEndpoint = typeof FailingEndpoint.Type

/**
 * Webhook endpoints, without the rows that represent task webhooks (`of_tasks`). The row of a deleted endpoint stays,
 * because the delivery log references it.
 */
export class EndpointStore extends Context.Service<EndpointStore>()(
  "gateway/webhooks/EndpointStore",
  {
    make: Effect.map(PgClient.PgClient, (sql) => ({ ...reads(sql), ...writes(sql) }))
  }
) {
  static readonly layer = Layer.effect(EndpointStore, EndpointStore.make)
}

function reads(sql: PgClient.PgClient) {
  return {
    /**
     * Unreported endpoints that have been failing since `since`, whose users have another endpoint that subscribes to
     * `webhook.failing`.
     */
    failing: (since: DateTime.Utc, limit: number) =>
      sql`
        SELECT e.id, e.user_id, e.url, e.failing_since FROM webhook_endpoints e
        WHERE e.failing_since <= ${toDate(since)} AND NOT e.failing_told AND e.enabled AND NOT e.of_tasks
          AND EXISTS (
            SELECT FROM webhook_endpoints o
            WHERE o.user_id = e.user_id AND o.id <> e.id AND o.enabled AND o.deleted_at IS NULL AND NOT o.of_tasks
              AND 'webhook.failing' = ANY (o.events))
        ORDER BY e.failing_since LIMIT ${limit}`.pipe(rowsOf(FailingEndpoint), storeFailures),
    find: (userId: UserId, id: EndpointId) =>
      sql`
        SELECT * FROM webhook_endpoints
        WHERE id = ${id} AND user_id = ${userId} AND deleted_at IS NULL AND NOT of_tasks`.pipe(
        rowsOf(EndpointRow),
        Effect.map(Array.head),
        storeFailures
      ),
    list: (userId: UserId, page: PageRequest) =>
      sql`
        SELECT * FROM webhook_endpoints
        WHERE user_id = ${userId} AND deleted_at IS NULL AND NOT of_tasks
          AND (${Option.getOrNull(page.before)}::text IS NULL OR id < ${Option.getOrNull(page.before)}::text)
        ORDER BY id DESC LIMIT ${page.limit}`.pipe(rowsOf(EndpointRow), storeFailures),
    /** The latest attempts at each endpoint that began since then, newest first; at most `attemptsMax` per endpoint. */
    latestAttempts: (ids: ReadonlyArray<EndpointId>, since: DateTime.Utc, attemptsMax: number) =>
      sql`
        SELECT a.* FROM unnest(${ids}::text[]) AS e (id)
        CROSS JOIN LATERAL (
          SELECT endpoint_id, started_at, status, failure FROM delivery_attempts
          WHERE endpoint_id = e.id AND started_at >= ${toDate(since)} AND failure IS DISTINCT FROM 'lost'
          ORDER BY started_at DESC LIMIT ${attemptsMax}
        ) a
        ORDER BY a.started_at DESC`.pipe(rowsOf(EndpointAttempt), storeFailures),
    /**
     * Counts for `count` hours starting at `from`, oldest first. Only the newest `deliveriesMax` deliveries of each
     * hour are counted.
     */
    hours: (id: EndpointId, from: DateTime.Utc, count: number, deliveriesMax: number) =>
      sql`
        SELECT * FROM deliveries_by_hour(${id}, ${toDate(from)}, ${count}::int, ${deliveriesMax}::int)`.pipe(
        rowsOf(EndpointHour),
        storeFailures
      )
  }
}

/**
 * Marks the pending deliveries of a disabled or deleted endpoint as `skipped`. Those with a running attempt are no
 * longer resent ones, so that a failure skips them too. docs/reference/webhooks.md#disabled-endpoints
 */
const skipPending = Effect.fnUntraced(function* (
  sql: PgClient.PgClient,
  id: EndpointId,
  now: DateTime.Utc
) {
  // The two halves of the condition each have an index. Together they still hold for a row whose claim has changed
  // while this waited for it. In the order of the ids, as `delivery_record` locks them
  yield* sql`
    WITH resent AS MATERIALIZED (
      SELECT id FROM delivery_queue
      WHERE manual AND (endpoint_id = ${id} AND owner IS NULL OR endpoint_id = ${id} AND owner IS NOT NULL)
      ORDER BY id FOR UPDATE
    )
    UPDATE delivery_queue SET manual = false WHERE id = ANY (ARRAY(SELECT id FROM resent))`
  yield* sql`
    WITH deleted AS (
      DELETE FROM delivery_queue WHERE endpoint_id = ${id} AND owner IS NULL RETURNING id, created_at
    )
    SELECT * FROM deliveries_skip(ARRAY(SELECT id FROM deleted), (SELECT min(created_at) FROM deleted),
      (SELECT max(created_at) FROM deleted), ${toDate(now)})`
})

const jsonOf = (filter: EndpointFilter | null | undefined): string | null =>
  filter == null ? null : JSON.stringify(filter)

const isOther = ({ enabled, url }: EndpointChange): boolean =>
  url !== undefined || enabled !== undefined

function writes(sql: PgClient.PgClient) {
  const Published = Schema.Struct({ endpoints: Schema.Array(EndpointId) })
  return {
    /** Publishes `webhook.failing` once. Returns the endpoints to notify. */
    publishFailing: (endpoint: FailingEndpoint, event: EventBody, now: DateTime.Utc) =>
      sql`
        SELECT endpoints FROM endpoint_failing_publish(
          ${endpoint.id}, ${toDate(endpoint.failingSince)}, ${event.id}, ${event.body}, ${toDate(now)})`.pipe(
        rowOf(Published),
        Effect.map(({ endpoints }) => endpoints),
        storeFailures
      ),
    /**
     * `None` if the user already has `endpointsMax`. Locks the user's row, so that concurrent creates cannot exceed the
     * maximum.
     */
    create: (e: NewEndpoint, endpointsMax: number) =>
      Effect.gen(function* () {
        yield* sql`SELECT 1 FROM users WHERE id = ${e.userId} FOR UPDATE`
        return yield* sql`
          INSERT INTO webhook_endpoints
            (id, user_id, url, events, description, enabled, filter, format, secret, secret_preview,
             created_at, updated_at)
          SELECT ${e.id}::text, ${e.userId}::uuid, ${e.url}::text, ${e.events}::text[], ${e.description}::text,
            ${e.enabled}::boolean, ${jsonOf(e.filter)}::jsonb, ${e.format}::text, ${e.secret}::bytea,
            ${e.secretPreview}::text,
            ${toDate(e.now)}::timestamptz, ${toDate(e.now)}::timestamptz
          WHERE (SELECT count(*) FROM webhook_endpoints
            WHERE user_id = ${e.userId} AND deleted_at IS NULL AND NOT of_tasks) < ${endpointsMax}::int
          RETURNING *`.pipe(rowsOf(EndpointRow), Effect.map(Array.head))
      }).pipe(
        audited(
          sql,
          Option.map(({ id }) => ({ resourceId: id }))
        ),
        sql.withTransaction,
        storeFailures
      ),
    /** Changes nothing if `accept` refuses the changed endpoint. */
    update: (
      userId: UserId,
      id: EndpointId,
      change: EndpointChange,
      now: DateTime.Utc,
      accept?: AcceptChanged
    ) =>
      Effect.gen(function* () {
        const found = yield* sql`
          UPDATE webhook_endpoints SET
            url = coalesce(${change.url ?? null}::text, url),
            events = coalesce(${change.events ?? null}::text[], events),
            description = CASE WHEN ${change.description !== undefined}::boolean
              THEN ${change.description ?? null}::text ELSE description END,
            enabled = coalesce(${change.enabled ?? null}::boolean, enabled),
            filter = CASE WHEN ${change.filter !== undefined}::boolean
              THEN ${jsonOf(change.filter)}::jsonb ELSE filter END,
            format = coalesce(${change.format ?? null}::text, format),
            -- Another address, or a new beginning
            failing_since = CASE WHEN ${isOther(change)}::boolean THEN NULL ELSE failing_since END,
            failing_told = failing_told AND NOT ${isOther(change)}::boolean,
            updated_at = ${toDate(now)}
          WHERE id = ${id} AND user_id = ${userId} AND deleted_at IS NULL AND NOT of_tasks RETURNING *`.pipe(
          rowsOf(EndpointRow),
          Effect.map(Array.head)
        )
        if (Option.isSome(found) && accept !== undefined) yield* accept(found.value)
        // Only disabling skips pending deliveries: those that were resent manually survive other changes to a disabled
        // endpoint
        if (Option.isSome(found) && change.enabled === false) yield* skipPending(sql, id, now)
        return found
      }).pipe(audited(sql, Option.flatMap(named)), sql.withTransaction, storeFailures),
    rotate: (
      userId: UserId,
      id: EndpointId,
      secret: Uint8Array,
      preview: string,
      previousUntil: DateTime.Utc,
      now: DateTime.Utc
    ) =>
      sql`
        UPDATE webhook_endpoints SET previous_secret = secret, previous_secret_until = ${toDate(previousUntil)},
          secret = ${secret}, secret_preview = ${preview}, updated_at = ${toDate(now)}
        WHERE id = ${id} AND user_id = ${userId} AND deleted_at IS NULL AND NOT of_tasks RETURNING *`.pipe(
        rowsOf(EndpointRow),
        Effect.map(Array.head),
        audited(sql, Option.flatMap(named)),
        storeFailures
      ),
    remove: (userId: UserId, id: EndpointId, now: DateTime.Utc) =>
      Effect.gen(function* () {
        const rows = yield* sql`
          UPDATE webhook_endpoints SET deleted_at = ${toDate(now)}, enabled = false, updated_at = ${toDate(now)}
          WHERE id = ${id} AND user_id = ${userId} AND deleted_at IS NULL AND NOT of_tasks RETURNING id`
        if (rows.length > 0) yield* skipPending(sql, id, now)
        return rows.length > 0
      }).pipe(
        audited(sql, (isRemoved) => (isRemoved ? named() : Option.none())),
        sql.withTransaction,
        storeFailures
      )
  }
}
