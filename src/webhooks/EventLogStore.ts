import { PgClient } from "@effect/sql-pg"
import { Context, DateTime, Effect, Layer, Option, Schema } from "effect"
import { Bytes, rowOf, rowsOf, Time, toDate } from "../db/Rows.ts"
import { storeFailures } from "../db/StoreFailures.ts"
import { StreamedEventType } from "../domain/Event.ts"
import { EventId, TaskId } from "../domain/Ids.ts"
import type { UserId } from "../domain/Ids.ts"
import { ledgerSkewMinutes } from "../domain/limits/Limits.ts"

/** An event with the body that its deliveries send. */
export class EventRow extends Schema.Class<EventRow>("EventRow")({
  /** The number of the ledger entry that was written in the event's transaction. */
  seq: Schema.BigInt,
  id: EventId,
  type: StreamedEventType,
  createdAt: Time,
  taskId: Schema.NullOr(TaskId),
  body: Bytes
}) {}

/** How far a reader has read a user's events. ADR 0232. */
export interface EventPosition {
  /** The number of the last ledger entry whose events were read. */
  readonly seq: bigint
  /** Balance alerts up to this time have been read. */
  readonly alertsUntil: DateTime.Utc
}

export interface EventFilter {
  readonly types: ReadonlyArray<StreamedEventType>
  /** Created at this time or later. */
  readonly since: Option.Option<DateTime.Utc>
  readonly position: EventPosition
  /** The maximum number of ledger entries to read. */
  readonly entries: number
}

export interface EventPage {
  /** In the order of their transactions. */
  readonly rows: ReadonlyArray<EventRow>
  /** The number of the last ledger entry that was read. */
  readonly seq: bigint
  /** Whether there may be more. */
  readonly isFull: boolean
}

/** All events, whether or not an endpoint subscribes to them. Read-only. */
export class EventLogStore extends Context.Service<EventLogStore>()(
  "gateway/webhooks/EventLogStore",
  {
    make: Effect.map(PgClient.PgClient, (sql) => ({ position: positionAt(sql), after: after(sql) }))
  }
) {
  static readonly layer = Layer.effect(EventLogStore, EventLogStore.make)
}

const Position = Schema.Struct({ seq: Schema.BigInt, alertsUntil: Time })

/**
 * The position after all of a user's events or, given a time, before the events created at this time or later. The
 * possible difference between the clocks of processes is subtracted. The wallet's row contains both values, so they are
 * consistent: an alert that is committed later comes after this position.
 */
const positionAt =
  (sql: PgClient.PgClient) => (userId: UserId, since: Option.Option<DateTime.Utc>) => {
    const { alertsUntil, seq } = Option.match(since, {
      onNone: () => ({ seq: sql`w.entry_count`, alertsUntil: sql`w.last_alert_at` }),
      onSome: (time) => {
        const earliest = DateTime.subtract(time, { minutes: ledgerSkewMinutes })
        const before = new Date(Math.max(0, DateTime.toEpochMillis(time) - 1))
        return {
          seq: sql`ledger_seq_at(w.user_id, w.entry_count, ${toDate(earliest)}) - 1`,
          alertsUntil: sql`${before}::timestamptz`
        }
      }
    })
    // Also returns a row for an unknown user, because the operator may ask for any id
    return sql`
      SELECT coalesce(max(${seq}), 0) AS seq, coalesce(max(${alertsUntil}), ${new Date(0)}) AS alerts_until
      FROM wallets w WHERE w.user_id = ${userId}`.pipe(rowOf(Position), storeFailures)
  }

/** A row of the page: one per event, or a single row without an event. */
const PageRow = Schema.Struct({
  lastSeq: Schema.NullOr(Schema.BigInt),
  entries: Schema.Int,
  event: Schema.Boolean
})

const Row = Schema.Union([
  Schema.Struct({ ...PageRow.fields, event: Schema.Literal(true), ...EventRow.fields }),
  Schema.Struct({ ...PageRow.fields, event: Schema.Literal(false) })
])

/**
 * The events of a user after a position. Events have no index by user, because every create would have to maintain it.
 * Instead, they are found through the ledger. Every transaction that publishes an event about a task also writes an
 * entry to the user's ledger, with the same time and under the wallet's lock. Entry numbers therefore follow the order
 * of commits without gaps: a reader that has seen an entry has not missed an earlier one. The entry's time leads to the
 * event by its key, in the partition of that day.
 *
 * If a charge ends in a capture and a release, its event belongs to the capture. A balance alert is looked up at the
 * time of its charge. The number of the charge's entry shows whether the alert is new; its time cannot, because the
 * process's clock may be behind that of the last alert. A withheld alert has no separate entry: `withheld_alerts`
 * contains the number of the entry that it follows. The time of the wallet's last alert is also searched. ADR 0232.
 */
const after =
  (sql: PgClient.PgClient) =>
  (userId: UserId, { entries, position, since, types }: EventFilter) =>
    sql`
      WITH page AS MATERIALIZED (
        SELECT e.seq, e.kind, e.subject_id, e.created_at FROM wallet_entries e
        WHERE e.user_id = ${userId} AND e.seq > ${position.seq} ORDER BY e.seq LIMIT ${entries}
      ), bounds AS MATERIALIZED (
        SELECT max(seq) AS last_seq, count(*)::integer AS entries FROM page
      ), withheld AS MATERIALIZED (
        SELECT a.seq, a.created_at FROM withheld_alerts a CROSS JOIN bounds b
        WHERE a.user_id = ${userId} AND a.seq >= ${position.seq} AND a.seq <= coalesce(b.last_seq, ${position.seq})
          AND (a.seq > ${position.seq} OR a.created_at > ${toDate(position.alertsUntil)})
      ), moments AS MATERIALIZED (
        SELECT created_at AS at FROM page WHERE subject_id IS NOT NULL
        UNION SELECT created_at FROM withheld
        UNION SELECT w.last_alert_at FROM wallets w
          WHERE w.user_id = ${userId} AND w.last_alert_at > ${toDate(position.alertsUntil)}
      ), found AS MATERIALIZED (
        SELECT v.* FROM moments m
        CROSS JOIN LATERAL (
          SELECT e.id, e.type, e.created_at, e.task_id, e.body FROM events e
          WHERE e.created_at = m.at
            AND e.id >= 'evt_' || lpad(to_hex(floor(extract(epoch from m.at) * 1000)::bigint), 12, '0')
            AND e.id < 'evt_' || lpad(to_hex(floor(extract(epoch from m.at) * 1000)::bigint + 1), 12, '0')
            AND e.user_id = ${userId}
          OFFSET 0
        ) v
        WHERE v.created_at >= ${Option.getOrNull(Option.map(since, toDate)) ?? new Date(0)} AND v.type = ANY (${types}::text[])
      ), placed AS (
        SELECT p.seq, f.* FROM found f JOIN page p ON p.created_at = f.created_at
          AND p.subject_id = f.task_id AND (p.kind = 'hold') = (f.type = 'task.created')
        WHERE p.kind <> 'release' OR NOT EXISTS (
          SELECT FROM wallet_entries c WHERE c.user_id = ${userId} AND c.seq = p.seq - 1
            AND c.kind = 'capture' AND c.subject_id = p.subject_id)
        UNION ALL
        SELECT coalesce(h.seq, a.seq, b.last_seq, ${position.seq}), f.* FROM found f CROSS JOIN bounds b
        CROSS JOIN LATERAL (
          SELECT min(p.seq) AS seq FROM page p WHERE p.kind IN ('capture', 'late_charge') AND p.created_at = f.created_at) a
        LEFT JOIN withheld h ON h.created_at = f.created_at
        WHERE f.task_id IS NULL AND CASE WHEN h.seq IS NOT NULL THEN true
          WHEN a.seq IS NOT NULL THEN f.created_at <> ${toDate(position.alertsUntil)}
          ELSE f.created_at > ${toDate(position.alertsUntil)} AND b.entries < ${entries} END
      )
      SELECT b.last_seq, b.entries, e.id IS NOT NULL AS event, e.* FROM bounds b LEFT JOIN placed e ON true
      ORDER BY e.seq, e.task_id NULLS LAST, e.created_at`.pipe(
      rowsOf(Row),
      Effect.map((rows): EventPage => {
        const [first] = rows
        return {
          rows: rows.flatMap((row) => (row.event ? [new EventRow(row)] : [])),
          seq: first?.lastSeq ?? position.seq,
          isFull: first !== undefined && first.entries >= entries
        }
      }),
      storeFailures
    )
