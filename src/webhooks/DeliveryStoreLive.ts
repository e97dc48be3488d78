import { PgClient } from "@effect/sql-pg"
import { Array, DateTime, Effect, Layer, Option, Schema } from "effect"
import { audited, named } from "../db/Audited.ts"
import { rowOf, rowsOf, Time, toDate } from "../db/Rows.ts"
import { storeFailures } from "../db/StoreFailures.ts"
import { DeliveryId, EndpointId } from "../domain/Ids.ts"
import {
  deliveriesPerEndpointAtOnceMax,
  deliveriesPerEndpointPerMinuteMax,
  webhookTimeoutSeconds
} from "../domain/limits/Limits.ts"
import { ClaimedDelivery, DeliveryStore } from "./DeliveryStore.ts"
import type { AttemptRecord } from "./DeliveryStore.ts"

/** `DeliveryStore` on Postgres. */
export const layer: Layer.Layer<DeliveryStore, never, PgClient.PgClient> = Layer.effect(
  DeliveryStore,
  Effect.map(PgClient.PgClient, (sql) =>
    DeliveryStore.of({
      claim: claim(sql),
      abandonClaims: abandonClaims(sql),
      releaseClaims: releaseClaims(sql),
      record: record(sql),
      ...schedule(sql),
      requeueLost: requeueLost(sql),
      skipDisabled: skipDisabled(sql),
      publishTo: publishTo(sql)
    })
  )
)

type Service = DeliveryStore["Service"]

function claim(sql: PgClient.PgClient): Service["claim"] {
  return (c) =>
    Effect.suspend(() => {
      const endpoints = c.wanted.map((wanted) => wanted.endpointId)
      const limits = c.wanted.map((wanted) => wanted.limit)
      // The first row also reports each endpoint's capacity, so it exists even if there is no delivery
      return sql`
        SELECT CASE WHEN row_number() OVER () = 1 THEN p.places END AS places, c.*,
          (SELECT e.user_id FROM webhook_endpoints e WHERE e.id = c.endpoint_id) AS user_id
        FROM (
          SELECT delivery_places(${endpoints}::text[], ${limits}::int[], ${c.owner}, ${toDate(c.claimedAt)},
            ${deliveriesPerEndpointPerMinuteMax}::int, ${deliveriesPerEndpointAtOnceMax}::int) AS places OFFSET 0
        ) p
        LEFT JOIN LATERAL delivery_claim(
          ${endpoints}::text[], p.places, ${c.owner}, ${toDate(c.now)}, ${toDate(c.claimedAt)}) c ON true`
    }).pipe(
      Effect.tap((rows) =>
        Effect.sync(() => {
          const places = rows[0]?.["places"]
          if (c.onBusy === undefined || !Array.isArray(places)) return
          for (const [n, { endpointId, limit }] of c.wanted.entries()) {
            if (Number(places[n]) < limit) c.onBusy(endpointId)
          }
        })
      ),
      Effect.map((rows) => rows.filter((row) => row["id"] !== null)),
      rowsOf(ClaimedDelivery),
      storeFailures
    )
}

/** No process has this id, so the next rescue finds an owner without a heartbeat and requeues the attempt. */
const noProcess = ""

function abandonClaims(sql: PgClient.PgClient): Service["abandonClaims"] {
  return (c) =>
    sql`
      UPDATE delivery_queue SET owner = ${noProcess}
      WHERE owner = ${c.owner} AND claimed_at = ${toDate(c.claimedAt)}
        AND endpoint_id = ANY(${c.endpoints}::text[])`.pipe(Effect.asVoid, storeFailures)
}

function releaseClaims(sql: PgClient.PgClient): Service["releaseClaims"] {
  return (all) => {
    const ids = all.map((one) => one.id)
    return sql`
      UPDATE delivery_queue q SET owner = NULL
      FROM unnest(${ids}::text[], ${all.map((one) => one.seq)}::int[]) AS r (id, seq)
      WHERE q.id = ANY(${ids}::text[]) AND q.id = r.id AND q.seq = r.seq`.pipe(
      Effect.asVoid,
      storeFailures
    )
  }
}

/** An array parameter that contains nulls. The driver cannot infer the type of an array of nulls alone. */
const nullable = <A>(values: ReadonlyArray<A | null>): ReadonlyArray<A | null> | string =>
  values.some((value) => value !== null) ? values : `{${values.map(() => "NULL").join(",")}}`

function record(sql: PgClient.PgClient): Service["record"] {
  return (all) => {
    const column = <A>(of: (one: AttemptRecord) => A) => all.map(of)
    const optional = <A>(of: (one: AttemptRecord) => A | null) => nullable(all.map(of))
    return sql`
      SELECT * FROM delivery_record(
        ${column((r) => r.claimed.id)}::text[], ${column((r) => toDate(r.claimed.createdAt))}::timestamptz[],
        ${column((r) => r.claimed.seq)}::int[], ${column((r) => toDate(r.claimed.startedAt))}::timestamptz[],
        ${column((r) => toDate(r.endedAt))}::timestamptz[],
        ${optional((r) => Option.getOrNull(Option.map(r.nextDueAt, toDate)))}::timestamptz[],
        ${column(failedAttempts)}::int[], ${optional((r) => r.outcome.status)}::int[],
        ${optional((r) => r.outcome.failure)}::text[], ${optional((r) => r.outcome.detail)}::text[],
        ${optional((r) => r.outcome.answer)}::text[], ${optional((r) => r.outcome.remoteAddress)}::text[]
      )`.pipe(Effect.asVoid, storeFailures)
  }
}

/** A lost attempt does not count. ADR 0003. */
const failedAttempts = ({ claimed, outcome }: AttemptRecord): number =>
  claimed.attempt + (outcome.failure === null || outcome.failure === "lost" ? 0 : 1)

/** A scan also finds rows that were committed up to this many milliseconds after their due time. */
const lateCommitMillis = 1000

function schedule(sql: PgClient.PgClient): Pick<Service, "due" | "endedSince"> {
  const Due = Schema.Struct({ endpoints: Schema.Array(EndpointId), next: Schema.NullOr(Time) })
  const Ended = Schema.Struct({ endedAt: Time })
  return {
    due: (since, now, until = now) => {
      const from = Option.match(since, {
        onNone: () => "-infinity",
        onSome: (time) => new Date(DateTime.toEpochMillis(time) - lateCommitMillis)
      })
      return sql`
        SELECT
          ARRAY(
            SELECT DISTINCT q.endpoint_id FROM delivery_queue q
            JOIN webhook_endpoints e ON e.id = q.endpoint_id AND (e.enabled OR q.manual)
            WHERE q.owner IS NULL AND q.due_at > ${from}::timestamptz AND q.due_at <= ${toDate(until)}
          ) AS endpoints,
          (SELECT min(due_at) FROM delivery_queue WHERE owner IS NULL AND due_at > ${toDate(now)}) AS next
        `.pipe(
        rowOf(Due),
        Effect.map(({ endpoints, next }) => ({ endpoints, next: Option.fromNullOr(next) })),
        storeFailures
      )
    },
    endedSince: (id, since, now) =>
      sql`
        SELECT coalesce(ended_at, ${toDate(now)}::timestamptz) AS ended_at FROM attempts_and_claims
        WHERE endpoint_id = ${id}
          AND started_at > ${toDate(DateTime.subtract(since, { seconds: attemptSecondsMax }))}
          AND (ended_at > ${toDate(since)} OR ended_at IS NULL)
        ORDER BY 1`.pipe(rowsOf(Ended), Effect.map(Array.map((row) => row.endedAt)), storeFailures)
  }
}

/** The maximum duration of an attempt, with a margin: twice the timeout. */
const attemptSecondsMax = 2 * webhookTimeoutSeconds

function requeueLost(sql: PgClient.PgClient): Service["requeueLost"] {
  const Rescued = Schema.Struct({ rescued: Schema.Int, endpoints: Schema.Array(EndpointId) })
  return (heartbeatSince, claimedBefore, now, limit) =>
    sql`
      SELECT * FROM delivery_rescue_some(
        ${toDate(heartbeatSince)}, ${toDate(claimedBefore)}, ${toDate(now)}, ${limit}::int)`.pipe(
      rowOf(Rescued),
      storeFailures
    )
}

function skipDisabled(sql: PgClient.PgClient): Service["skipDisabled"] {
  return (disabledSince, now) =>
    sql`SELECT * FROM deliveries_skip_disabled(${toDate(disabledSince)}, ${toDate(now)})`.pipe(
      Effect.asVoid,
      storeFailures
    )
}

function publishTo(sql: PgClient.PgClient): Service["publishTo"] {
  const Row = Schema.Struct({ id: DeliveryId })
  return (userId, endpointId, event, now) =>
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
      rowOf(Row),
      Effect.map((row) => row.id),
      audited(sql, named),
      storeFailures
    )
}
