import { PgClient } from "@effect/sql-pg"
import { Context, DateTime, Effect, Layer, Option, Schema } from "effect"
import { Bytes, rowOf, rowsOf, Time, toDate } from "../db/Rows.ts"
import { storeFailures } from "../db/StoreFailures.ts"
import { StreamedEventType } from "../domain/Event.ts"
import { EventId, TaskId } from "../domain/Ids.ts"
import type { UserId } from "../domain/Ids.ts"
import { ledgerSkewMinutes } from "../domain/limits/Limits.ts"
import type { StoreUnavailable } from "../domain/Problem.ts"

/** An event with the bytes that its deliveries send. */
export class EventRow extends Schema.Class<EventRow>("EventRow")({
  /** The ledger entry of its transaction. */
  seq: Schema.BigInt,
  id: EventId,
  type: StreamedEventType,
  createdAt: Time,
  taskId: Schema.NullOr(TaskId),
  body: Bytes
}) {}

/** The position of a reader of a user's events. ADR 0232. */
export interface EventPosition {
  /** Number of the last ledger entry whose events were read. */
  readonly seq: bigint
  /** Balance alerts up to this time were read. */
  readonly alertsUntil: DateTime.Utc
}

export interface EventFilter {
  readonly types: ReadonlyArray<StreamedEventType>
  /** Created at or after. */
  readonly since: Option.Option<DateTime.Utc>
  readonly position: EventPosition
  /** Most ledger entries to read. */
  readonly entries: number
}

export interface EventPage {
  /** In the order of their transactions. */
  readonly rows: ReadonlyArray<EventRow>
  /** Number of the last ledger entry that was read. */
  readonly seq: bigint
  /** There may be more. */
  readonly isFull: boolean
}

/** Events, whether or not an endpoint subscribes to them. Read-only. */
export class EventLogStore extends Context.Service<
  EventLogStore,
  {
    /**
     * After all events of a user, or before those created at this time or later, less the possible difference
     * between the clocks of processes.
     */
    readonly position: (
      userId: UserId,
      since: Option.Option<DateTime.Utc>
    ) => Effect.Effect<EventPosition, StoreUnavailable>
    /** The events of a user after a position. */
    readonly after: (
      userId: UserId,
      filter: EventFilter
    ) => Effect.Effect<EventPage, StoreUnavailable>
  }
>()("gateway/webhooks/EventLogStore") {
  static readonly layer = Layer.effect(
    EventLogStore,
    Effect.map(PgClient.PgClient, (sql) =>
      EventLogStore.of({ position: positionAt(sql), after: after(sql) })
    )
  )
}

const Position = Schema.Struct({ seq: Schema.BigInt, alertsUntil: Time })

/** One wallet row has both, so an alert committed later is not among those up to its last. */
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
    // Returns a row for an unknown user too, as the operator may ask
    return sql`
      SELECT coalesce(max(${seq}), 0) AS seq, coalesce(max(${alertsUntil}), ${new Date(0)}) AS alerts_until
      FROM wallets w WHERE w.user_id = ${userId}`.pipe(rowOf(Position), storeFailures)
  }

/** One row for each event, or one without an event. */
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
 * Events have no index by user, because every create would pay for it. Every transaction that publishes an event of
 * a task also writes an entry into its user's ledger, with the same time and under the lock of the wallet, so entry
 * numbers follow the order of commits without gaps: a reader that has seen an entry has missed none before it. With
 * the time of the entry an event is found by its key, in the partition of its day.
 *
 * A charge that ends in a capture and a release has its event at the capture. A balance alert is found at the time of
 * its charge, whose number shows that it is new, because its process's clock may be behind that of the last alert. A
 * withheld alert has no entry: `withheld_alerts` has the number of the entry that it follows. The time of the
 * wallet's last alert is searched too. ADR 0232.
 */
const after = (sql: PgClient.PgClient) => {
  return (userId: UserId, { entries, position, since, types }: EventFilter) =>
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
}
