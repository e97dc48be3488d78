import { PgClient } from "@effect/sql-pg"
import { Context, DateTime, Effect, Layer, Schema } from "effect"
import { settle } from "../../db/BatchWrites.ts"
import type { Alerting } from "../../db/BatchWrites.ts"
import { amounts, booleans, composite, counts, integers, texts, uuids } from "../../db/Columns.ts"
import { Micro, rowsOf, Time, toDate } from "../../db/Rows.ts"
import { storeFailures } from "../../db/StoreFailures.ts"
import type { Credits } from "../../domain/Credits.ts"
import { UserId } from "../../domain/Ids.ts"
import type { EndpointId } from "../../domain/Ids.ts"
import { usageText } from "../CallStore.ts"
import type { CallEnd, CallStart } from "../CallStore.ts"
import { UsageSums } from "../UsageSums.ts"

/** The new size of a key's reservation. If both amounts are 0, the reservation is closed. */
export interface ReservationSize {
  readonly key: string
  /** Identifies the key's secret that its calls use. ADR 0190. */
  readonly rotation: number
  readonly user: UserId
  /** The id of the hold that replaces the last one. */
  readonly hold: string
  /** The catalog of running and future calls. ADR 0116. */
  readonly catalogId?: number | null
  /** The maximum cost of running calls. */
  readonly needs: Credits
  /** The amount for future calls, as far as the wallet covers it. */
  readonly extra: Credits
}

/** An ended call that was drawn on its key's reservation. */
export interface DrawnCall {
  readonly start: CallStart
  /** Unix time in milliseconds. */
  readonly begunAt: number
  readonly end: CallEnd
}

/** The contents of one transaction. There is a size for the key of every call. */
export interface ReservationBatch extends Alerting {
  readonly sizes: ReadonlyArray<ReservationSize>
  readonly ended: ReadonlyArray<DrawnCall>
  readonly processId: string
}

/** A key's reservation as it is now. */
export interface ReservationGrant {
  readonly key: string
  readonly granted: Credits
  /** The wallet's available balance, as far as the key's spend limit allows it. */
  readonly available: Credits
  /**
   * Whether calls may be drawn: the key may be used, and its spend limit has not been reset since the reservation was
   * opened.
   */
  readonly alive: boolean
  /** Until when, as far as known: the expiry of the key, or the reset of its spend limit. */
  readonly expiresAt: DateTime.Utc | null
  /** Credits left of the key's spend limit in addition to the reservation; `null` without one. */
  readonly left: Credits | null
}

export interface ReservationOutcome {
  readonly grants: ReadonlyArray<ReservationGrant>
  /** Endpoints to notify of a `balance.low`. */
  readonly endpoints: ReadonlyArray<EndpointId>
}

/** A reservation of a dead process. */
export class LostReservation extends Schema.Class<LostReservation>("LostReservation")({
  processId: Schema.String,
  key: Schema.String,
  userId: UserId
}) {}

/** Holds that processes write in advance for keys that call often. ADR 0116. */
export class ReservationStore extends Context.Service<ReservationStore>()(
  "gateway/passthrough/ReservationStore",
  {
    make: Effect.map(PgClient.PgClient, (sql) => ({
      /** Settles drawn calls and resizes the reservations. Safe to repeat, also as part of a larger batch. */
      write: write(sql),
      /** The reservations of dead processes, except those written since the process was found dead. */
      lost: (heartbeatSince: DateTime.Utc, limit: number) =>
        sql`
          SELECT h.process_id, h.api_key_id AS key, h.user_id FROM holds h
          WHERE h.kind = 'reservation' AND NOT EXISTS (
            SELECT 1 FROM processes p
            WHERE p.id = h.process_id AND (p.heartbeat_at >= ${toDate(heartbeatSince)}
              OR p.left_at IS NULL AND h.created_at >= ${toDate(heartbeatSince)})
          )
          LIMIT ${limit}`.pipe(rowsOf(LostReservation), storeFailures)
    }))
  }
) {
  static readonly layer = Layer.effect(ReservationStore, ReservationStore.make)
}

const Notice = Schema.Struct({
  apiKeyId: Schema.NullOr(Schema.String),
  granted: Schema.NullOr(Micro),
  available: Schema.NullOr(Micro),
  alive: Schema.NullOr(Schema.Boolean),
  expiresAt: Schema.NullOr(Time),
  userId: Schema.NullOr(UserId),
  threshold: Schema.NullOr(Micro)
})

/**
 * The fast function fails if there is an alert or a repeated call. The slower one then runs, in a transaction with its
 * alerts. It also charges costs beyond the holds.
 */
const write = (sql: PgClient.PgClient) => (batch: ReservationBatch) => {
  const hasLateCharges = batch.ended.some(({ end }) => end.beyond !== undefined)
  return Effect.map(
    settle(sql, batch, (alerts) => {
      const isCareful = alerts || hasLateCharges
      const statement = isCareful ? carefulStatement : fastStatement
      return sql
        .unsafe<object>(statement, parametersOf(batch, alerts, isCareful))
        .pipe(rowsOf(Notice))
    }),
    ({ endpoints, rows }): ReservationOutcome => ({ endpoints, grants: rows.flatMap(grantOf) })
  )
}

const grantOf = (row: typeof Notice.Type): ReadonlyArray<ReservationGrant> => {
  const { alive, apiKeyId, available, expiresAt, granted, threshold } = row
  return apiKeyId === null || granted === null || available === null || alive === null
    ? []
    : [{ key: apiKeyId, granted, available, alive, expiresAt, left: threshold }]
}

const batch = `${composite("reservation_sizes", 1, 9)}, ${composite("drawn_calls", 10, 16)}`

const fastStatement = `SELECT * FROM reservations_renew(
  ${batch}, ${composite("drawn_usage", 26, 11)}, $37, make_interval(secs => $38), $39, $40)`

const carefulStatement = `SELECT * FROM reservations_renew_again(
  ${batch}, $26, make_interval(secs => $27), $28, $29)`

const parametersOf = (
  { ended, now, processId, sizes, throttleSeconds }: ReservationBatch,
  alerts: boolean,
  isCareful: boolean
) => {
  const { calls, keys, used } = numbered(ended, sizes, DateTime.toEpochMillis(now))
  return [
    texts(sizes, ({ key }) => key),
    integers(sizes, ({ rotation }) => rotation),
    uuids(sizes, ({ user }) => user),
    uuids(sizes, ({ hold }) => hold),
    integers(sizes, ({ catalogId }) => catalogId ?? null),
    amounts(sizes, ({ needs }) => needs),
    amounts(sizes, ({ extra }) => extra),
    counts(keys, ({ captures }) => captures),
    amounts(keys, ({ charged }) => charged),
    uuids(ended, ({ start }) => start.id),
    integers(calls, ({ place }) => place),
    counts(calls, ({ number }) => number),
    amounts(calls, ({ total }) => total),
    counts(ended, ({ begunAt }) => begunAt),
    amounts(ended, ({ start }) => start.amount),
    amounts(calls, ({ captured }) => captured),
    texts(ended, ({ end }) => end.outcome),
    integers(ended, ({ end }) => end.status),
    texts(ended, ({ end }) => end.account),
    texts(ended, ({ end, start }) => usageText(end, start.catalogId)),
    texts(ended, ({ start }) => start.vendor),
    texts(ended, ({ start }) => start.model),
    texts(ended, ({ start }) => start.route),
    booleans(ended, ({ start }) => start.sandbox),
    texts(ended, ({ start }) => start.trace),
    // `reservations_renew_again` may skip calls, and sums up the others itself
    ...(isCareful ? [] : used.columns()),
    processId,
    throttleSeconds,
    alerts,
    toDate(now)
  ]
}

/**
 * The number of each call's capture among its key's captures, and their running sum, so that the server need not
 * sort. `place` is the key's place, from 1. ADR 0072.
 */
const numbered = (
  ended: ReservationBatch["ended"],
  sizes: ReservationBatch["sizes"],
  now: number
) => {
  const keys = sizes.map((_, n) => ({ place: n + 1, captures: 0, charged: 0n }))
  const byKey = new Map(sizes.map(({ key }, n) => [key, keys[n]]))
  const used = new UsageSums()
  const calls = ended.map(({ begunAt, end, start }) => {
    // The SQL function raises an error for a call whose key has no size
    const key = byKey.get(start.key) ?? { place: 0, captures: 0, charged: 0n }
    const captured = end.captured < start.amount ? end.captured : start.amount
    if (captured > 0n) {
      key.captures += 1
      key.charged += captured
    }
    const number = captured > 0n ? key.captures : 0
    used.add(key.place, start, end, captured, now - begunAt)
    return { place: key.place, number, total: key.charged, captured }
  })
  return { keys, calls, used }
}
