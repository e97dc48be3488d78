import { PgClient } from "@effect/sql-pg"
import { Array, Context, Effect, Layer, Option, Schema } from "effect"
import type { DateTime } from "effect"
import { SqlError } from "effect/sql"
import type { Credits } from "../domain/Credits.ts"
import { EndpointId, UserId } from "../domain/Ids.ts"
import type { StoreUnavailable } from "../domain/Problem.ts"
import { sqlState, storeFailures } from "./Failures.ts"
import { Micro, rowsOf, Time, toDate } from "./Rows.ts"
import type { EventBody } from "./TaskStore.ts"

/** A metered call before it goes upstream: whose, how much is held, and what its receipt will say. */
export interface CallStart {
  readonly id: string
  readonly user: UserId
  readonly key: string
  readonly amount: Credits
  readonly trace: string
  readonly vendor: string
  readonly model: string | null
  readonly route: string
  readonly sandbox: boolean
}

/** Why a call may not go upstream: its key died meanwhile, or the balance is too low. */
export type CallRefusal = "key" | "balance"

/** How a call ended. */
export interface CallEnd {
  readonly id: string
  readonly captured: Credits
  readonly outcome: "settled" | "released" | "lost"
  readonly status: number | null
  readonly account: string | null
  readonly usage: Readonly<Record<string, number | boolean>> | null
}

export interface CloseBatch {
  readonly ends: ReadonlyArray<CallEnd>
  readonly alert: (wallet: {
    readonly userId: UserId
    readonly available: Credits
    readonly threshold: Credits
  }) => EventBody
  readonly throttleSeconds: number
  readonly now: DateTime.Utc
}

export class CallRow extends Schema.Class<CallRow>("CallRow")({
  id: Schema.String,
  vendor: Schema.String,
  model: Schema.NullOr(Schema.String),
  route: Schema.String,
  outcome: Schema.Literals(["settled", "released", "lost"]),
  httpStatus: Schema.NullOr(Schema.Int),
  held: Micro,
  captured: Micro,
  usage: Schema.NullOr(Schema.Record(Schema.String, Schema.Json)),
  sandbox: Schema.Boolean,
  traceId: Schema.NullOr(Schema.String),
  createdAt: Time,
  endedAt: Time
}) {}

/** Metered calls: opened with their holds, closed with their receipts, many in one statement. ADR 0072. */
export class CallStore extends Context.Service<
  CallStore,
  {
    /** Holds for all that can pay. Answers who was refused. */
    readonly open: (
      starts: ReadonlyArray<CallStart>,
      processId: string,
      now: DateTime.Utc
    ) => Effect.Effect<ReadonlyMap<string, CallRefusal>, StoreUnavailable>
    /** Settles and releases in one transaction with the alerts. Answers the endpoints to wake. */
    readonly close: (
      batch: CloseBatch
    ) => Effect.Effect<ReadonlyArray<EndpointId>, StoreUnavailable>
    /** Open calls of dead processes, and those opened before `before`. */
    readonly orphans: (
      heartbeatSince: DateTime.Utc,
      before: DateTime.Utc,
      limit: number
    ) => Effect.Effect<ReadonlyArray<string>, StoreUnavailable>
    readonly list: (
      userId: UserId,
      page: { readonly before: Option.Option<string>; readonly limit: number }
    ) => Effect.Effect<ReadonlyArray<CallRow>, StoreUnavailable>
    readonly find: (
      userId: UserId,
      id: string
    ) => Effect.Effect<Option.Option<CallRow>, StoreUnavailable>
  }
>()("gateway/store/CallStore") {
  static readonly layer = Layer.effect(
    CallStore,
    Effect.map(PgClient.PgClient, (sql) =>
      CallStore.of({
        open: open(sql),
        close: close(sql),
        orphans: (heartbeatSince, before, limit) =>
          sql`
            SELECT h.id FROM holds h
            WHERE h.kind = 'call' AND h.call IS NOT NULL AND (h.created_at < ${toDate(before)} OR NOT EXISTS (
              SELECT 1 FROM processes p
              WHERE p.id = h.process_id AND p.heartbeat_at >= ${toDate(heartbeatSince)}
            ))
            LIMIT ${limit}`.pipe(rowsOf(Id), Effect.map(Array.map(({ id }) => id)), storeFailures),
        list: (userId, page) =>
          sql`
            SELECT * FROM calls WHERE user_id = ${userId}
              AND (${Option.getOrNull(page.before)}::uuid IS NULL OR id < ${Option.getOrNull(page.before)}::uuid)
            ORDER BY id DESC LIMIT ${page.limit}`.pipe(rowsOf(CallRow), storeFailures),
        find: (userId, id) =>
          sql`SELECT * FROM calls WHERE id = ${id} AND user_id = ${userId}`.pipe(
            rowsOf(CallRow),
            Effect.map(Array.head),
            storeFailures
          )
      })
    )
  )
}

const Id = Schema.Struct({ id: Schema.String })

function open(sql: PgClient.PgClient) {
  const Refused = Schema.Struct({ id: Schema.String, refused: Schema.Literals(["key", "balance"]) })
  return (starts: ReadonlyArray<CallStart>, processId: string, now: DateTime.Utc) => {
    const rows = starts.map(({ amount, id, key, trace, user, ...call }) => ({
      id,
      user,
      key,
      amount: String(amount),
      trace,
      call: { ...call, key, trace }
    }))
    return sql`
      SELECT id, refused FROM calls_open(
        p_calls => ${JSON.stringify(rows)}::text::jsonb, p_process => ${processId}, p_now => ${toDate(now)}
      ) WHERE refused IS NOT NULL`.pipe(
      rowsOf(Refused),
      Effect.map((refusals) => new Map(refusals.map(({ id, refused }) => [id, refused]))),
      storeFailures
    )
  }
}

function close(sql: PgClient.PgClient) {
  const Alert = Schema.Struct({ userId: UserId, available: Micro, threshold: Micro })
  const Published = Schema.Struct({ endpoints: Schema.Array(EndpointId) })
  const settle = (batch: CloseBatch, alerts: boolean) => {
    const rows = batch.ends.map((end) => ({ ...end, captured: String(end.captured) }))
    return sql`
      SELECT * FROM calls_close(
        p_calls => ${JSON.stringify(rows)}::text::jsonb,
        p_throttle => make_interval(secs => ${batch.throttleSeconds}),
        p_alerts => ${alerts}, p_now => ${toDate(batch.now)}
      )`.pipe(rowsOf(Alert))
  }
  const withAlerts = Effect.fnUntraced(function* (batch: CloseBatch) {
    const woken = yield* Effect.forEach(yield* settle(batch, true), (wallet) => {
      const event = batch.alert(wallet)
      return sql`
        SELECT event_publish(
          ${event.id}, ${wallet.userId}, 'balance.low', NULL, ${event.body}, NULL, ${toDate(batch.now)}
        ) AS endpoints`.pipe(rowsOf(Published))
    })
    return woken.flat().flatMap(({ endpoints }) => endpoints)
  }, sql.withTransaction)
  const isAlertDue = (error: unknown) =>
    SqlError.isSqlError(error) && Option.contains(sqlState(error), "GW428")
  /** One statement; a transaction with several only when an alert has to go with it. */
  return (batch: CloseBatch) =>
    settle(batch, false).pipe(
      Effect.as<ReadonlyArray<EndpointId>>([]),
      Effect.catchIf(isAlertDue, () => withAlerts(batch)),
      storeFailures
    )
}
