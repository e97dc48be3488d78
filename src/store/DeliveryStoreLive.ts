import { PgClient } from "@effect/sql-pg"
import { Array, Effect, Layer, Option, Schema } from "effect"
import type { DateTime } from "effect"
import type { Fragment } from "effect/sql/Statement"
import { DeliveryId, EndpointId } from "../domain/Ids.ts"
import type { UserId } from "../domain/Ids.ts"
import { Claimed, DeliveryStore } from "./DeliveryStore.ts"
import type { Recorded } from "./DeliveryStore.ts"
import { storeFailures } from "./Failures.ts"
import { rowsOf, Time, toDate } from "./Rows.ts"
import type { EventBody } from "./TaskStore.ts"

/** `DeliveryStore` on Postgres. */
export const layer: Layer.Layer<DeliveryStore, never, PgClient.PgClient> = Layer.effect(
  DeliveryStore,
  Effect.map(PgClient.PgClient, (sql) =>
    DeliveryStore.of({
      claim: claim(sql),
      record: record(sql),
      ...schedule(sql),
      freeLost: freeLost(sql),
      release: release(sql),
      skipDisabled: skipDisabled(sql),
      publishTo: publishTo(sql)
    })
  )
)

function claim(sql: PgClient.PgClient) {
  return (c: {
    readonly endpointId: EndpointId
    readonly owner: string
    readonly now: DateTime.Utc
    readonly limit: number
  }) =>
    sql`
      WITH target AS (
        SELECT url, secret, previous_secret, previous_secret_until
        FROM webhook_endpoints WHERE id = ${c.endpointId} AND enabled
      ), due AS (
        SELECT id FROM delivery_queue
        WHERE endpoint_id = ${c.endpointId} AND owner IS NULL AND due_at <= ${toDate(c.now)}
          AND EXISTS (SELECT 1 FROM target)
        ORDER BY due_at, id LIMIT ${c.limit} FOR UPDATE SKIP LOCKED
      ), claimed AS (
        UPDATE delivery_queue q SET owner = ${c.owner}, claimed_at = ${toDate(c.now)}, seq = q.seq + 1
        FROM due WHERE q.id = due.id RETURNING q.*
      ), logged AS (
        INSERT INTO delivery_attempts (delivery_id, seq, endpoint_id, due_at, started_at)
        SELECT id, seq, endpoint_id, due_at, ${toDate(c.now)}::timestamptz FROM claimed
      ), moved AS (
        UPDATE deliveries d SET status = 'delivering', updated_at = ${toDate(c.now)}
        FROM claimed WHERE d.id = claimed.id AND d.created_at = claimed.created_at
        RETURNING d.id, d.event_id, d.event_created_at
      )
      SELECT c.id, c.created_at, c.attempt, c.seq, c.due_at, c.claimed_at AS started_at, e.body, t.*
      FROM claimed c JOIN moved m ON m.id = c.id
      JOIN events e ON e.id = m.event_id AND e.created_at = m.event_created_at
      CROSS JOIN target t ORDER BY c.due_at, c.id`.pipe(rowsOf(Claimed), storeFailures)
}

function record(sql: PgClient.PgClient) {
  return (r: Recorded) => {
    const { claimed, outcome } = r
    const ended = toDate(r.endedAt)
    const next = Option.getOrNull(Option.map(r.nextDueAt, toDate))
    const status = next !== null ? "pending" : outcome.failure === null ? "succeeded" : "failed"
    const failures = claimed.attempt + (outcome.failure === null ? 0 : 1)
    const queued =
      next === null
        ? sql`DELETE FROM delivery_queue WHERE id = ${claimed.id} AND seq = ${claimed.seq} RETURNING id`
        : sql`
            UPDATE delivery_queue SET owner = NULL, due_at = ${next}, attempt = ${failures}
            WHERE id = ${claimed.id} AND seq = ${claimed.seq} RETURNING id`
    return sql`
      WITH queued AS (${queued}),
      moved AS (
        UPDATE deliveries SET status = ${status}, attempts = attempts + 1, updated_at = ${ended}
        WHERE id = ${claimed.id} AND created_at = ${toDate(claimed.createdAt)} AND EXISTS (SELECT 1 FROM queued)
      )
      UPDATE delivery_attempts SET ended_at = ${ended}, status = ${outcome.status}, failure = ${outcome.failure},
        detail = ${outcome.detail}, answer = ${outcome.answer}, remote_address = ${outcome.remoteAddress}
      WHERE delivery_id = ${claimed.id} AND seq = ${claimed.seq}
        AND started_at = ${toDate(claimed.startedAt)}`.pipe(Effect.asVoid, storeFailures)
  }
}

function schedule(sql: PgClient.PgClient) {
  const Due = Schema.Struct({ dueAt: Schema.NullOr(Time) })
  const Endpoint = Schema.Struct({ endpointId: EndpointId })
  const Started = Schema.Struct({ startedAt: Time })
  const first = (rows: ReadonlyArray<typeof Due.Type>) => Option.fromNullOr(rows[0]?.dueAt ?? null)
  return {
    due: Effect.fnUntraced(function* (now: DateTime.Utc) {
      const endpoints = yield* sql`
        SELECT DISTINCT q.endpoint_id FROM delivery_queue q
        JOIN webhook_endpoints e ON e.id = q.endpoint_id AND e.enabled
        WHERE q.owner IS NULL AND q.due_at <= ${toDate(now)}`.pipe(rowsOf(Endpoint))
      const next = yield* sql`
        SELECT min(due_at) AS due_at FROM delivery_queue
        WHERE owner IS NULL AND due_at > ${toDate(now)}`.pipe(rowsOf(Due))
      return { endpoints: endpoints.map((row) => row.endpointId), next: first(next) }
    }, storeFailures),
    startedSince: (id: EndpointId, since: DateTime.Utc) =>
      sql`
        SELECT started_at FROM delivery_attempts
        WHERE endpoint_id = ${id} AND started_at > ${toDate(since)} ORDER BY started_at`.pipe(
        rowsOf(Started),
        Effect.map(Array.map((row) => row.startedAt)),
        storeFailures
      )
  }
}

function freeLost(sql: PgClient.PgClient) {
  return (heartbeatSince: DateTime.Utc, claimedSince: DateTime.Utc, now: DateTime.Utc) =>
    freed(
      sql,
      sql`q.owner IS NOT NULL AND (q.claimed_at < ${toDate(claimedSince)} OR NOT EXISTS (
        SELECT 1 FROM processes p WHERE p.id = q.owner AND p.heartbeat_at >= ${toDate(heartbeatSince)}
      ))`,
      now
    ).pipe(
      Effect.map((rows) => rows.length),
      storeFailures
    )
}

/** Hands an attempt back that was interrupted between its claim and its record. */
function release(sql: PgClient.PgClient) {
  return (claimed: Claimed, now: DateTime.Utc) =>
    freed(
      sql,
      sql`q.owner IS NOT NULL AND q.id = ${claimed.id} AND q.seq = ${claimed.seq}`,
      now
    ).pipe(Effect.asVoid, storeFailures)
}

/** Due again at once and uncounted; skipped when the endpoint was disabled in the meantime. */
function freed(sql: PgClient.PgClient, which: Fragment, now: DateTime.Utc) {
  return sql`
      WITH lost AS (
        SELECT q.id, q.seq, q.created_at, q.claimed_at, e.enabled
        FROM delivery_queue q JOIN webhook_endpoints e ON e.id = q.endpoint_id
        WHERE ${which} FOR UPDATE OF q SKIP LOCKED
      ), gone AS (
        DELETE FROM delivery_queue q USING lost WHERE q.id = lost.id AND NOT lost.enabled
      ), freed AS (
        UPDATE delivery_queue q SET owner = NULL, due_at = ${toDate(now)}
        FROM lost WHERE q.id = lost.id AND lost.enabled
      ), pending AS (
        UPDATE deliveries d SET updated_at = ${toDate(now)},
          status = CASE WHEN lost.enabled THEN 'pending' ELSE 'skipped' END
        FROM lost WHERE d.id = lost.id AND d.created_at = lost.created_at
      )
      UPDATE delivery_attempts a SET ended_at = ${toDate(now)}, failure = 'lost',
        detail = 'the process ended during this attempt'
      FROM lost
      WHERE a.delivery_id = lost.id AND a.seq = lost.seq AND a.started_at = lost.claimed_at
      RETURNING a.delivery_id`
}

function skipDisabled(sql: PgClient.PgClient) {
  return (disabledSince: DateTime.Utc, now: DateTime.Utc) =>
    sql`
      WITH gone AS (
        DELETE FROM delivery_queue q USING webhook_endpoints e
        WHERE e.id = q.endpoint_id AND NOT e.enabled AND e.updated_at >= ${toDate(disabledSince)}
          AND q.owner IS NULL
        RETURNING q.id, q.created_at
      )
      UPDATE deliveries d SET status = 'skipped', updated_at = ${toDate(now)}
      FROM gone WHERE d.id = gone.id AND d.created_at = gone.created_at`.pipe(
      Effect.asVoid,
      storeFailures
    )
}

function publishTo(sql: PgClient.PgClient) {
  const Row = Schema.Struct({ id: DeliveryId })
  return (
    userId: UserId,
    endpointId: EndpointId,
    event: EventBody & { readonly type: string },
    now: DateTime.Utc
  ) =>
    sql`
      WITH written AS (
        INSERT INTO events (id, created_at, user_id, type, body)
        VALUES (${event.id}, ${toDate(now)}, ${userId}, ${event.type}, ${event.body}) RETURNING id
      ), delivery AS (
        INSERT INTO deliveries
          (id, created_at, user_id, endpoint_id, event_id, event_created_at, event_type, status, updated_at)
        SELECT time_sorted_id('whd_', ${toDate(now)}::timestamptz), ${toDate(now)}::timestamptz,
          ${userId}::uuid, ${endpointId}::text, id, ${toDate(now)}::timestamptz, ${event.type}::text,
          'pending', ${toDate(now)}::timestamptz
        FROM written RETURNING id, created_at, endpoint_id
      )
      INSERT INTO delivery_queue (id, created_at, endpoint_id, due_at)
      SELECT id, created_at, endpoint_id, created_at FROM delivery RETURNING id`.pipe(
      rowsOf(Row),
      Effect.flatMap((rows) => Effect.fromOption(Array.head(rows))),
      Effect.catchTag("NoSuchElementError", Effect.die),
      Effect.map((row) => row.id),
      storeFailures
    )
}
