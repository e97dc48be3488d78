import type { PgClient } from "@effect/sql-pg"
import { Effect, Option, Schema } from "effect"
import type * as DateTime from "effect/DateTime"
import { SqlError } from "effect/sql"
import type { Credits } from "../domain/Credits.ts"
import type { EventBody, EventType } from "../domain/Event.ts"
import { EndpointId } from "../domain/Ids.ts"
import type { TaskId, UserId } from "../domain/Ids.ts"
import { deadlockRetries } from "../domain/Retries.ts"
import { rowsOf, toDate } from "./Rows.ts"
import { sqlState, storeFailures } from "./StoreFailures.ts"

/**
 * Calls that arrive together are committed together, and two commits run concurrently: while one waits for the disk,
 * the next is prepared. ADR 0060.
 */
export const groupCommit = { itemsMax: 128, runsMax: 2, splitBatch: true } as const

/** A `bytea` in JSON. */
export const hex = (bytes: Uint8Array): string => `\\x${Buffer.from(bytes).toString("hex")}`

/** The outcomes of calls, in order, from rows with the call's index as `n`. */
export const outcomes = <Call, Row extends { readonly n: number }, Outcome>(
  calls: ReadonlyArray<Call>,
  rows: ReadonlyArray<Row>,
  outcomeOf: (row: Row | undefined, call: Call) => Outcome
): ReadonlyArray<Outcome> => {
  const byIndex = new Map(rows.map((row) => [row.n, row]))
  return calls.map((call, n) => outcomeOf(byIndex.get(n), call))
}

/** Retries after a deadlock or a serialization failure. In both cases the statement has changed nothing. */
export const retryDeadlock = <A, E, R>(self: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.retry(self, { ...deadlockRetries, while: isDeadlock })

const isDeadlock = (error: unknown): boolean =>
  SqlError.isSqlError(error) &&
  (error.reason._tag === "DeadlockError" || error.reason._tag === "SerializationError")

const Published = Schema.Struct({ endpoints: Schema.Array(EndpointId) })

interface UserEvent {
  readonly type: EventType
  readonly userId: UserId
  /** The task whose ledger entry the event follows. */
  readonly taskId: TaskId | null
  readonly event: EventBody
  readonly now: DateTime.Utc
}

/** Writes an event and its deliveries in the transaction of a charge. Returns the endpoints to notify. */
export const publishEvent = (
  sql: PgClient.PgClient,
  { event, now, taskId, type, userId }: UserEvent
) =>
  sql`
    SELECT * FROM event_publish(
      ${event.id}, ${userId}, ${type}, ${taskId}::uuid, ${event.body}, NULL, ${toDate(now)})`.pipe(
    rowsOf(Published),
    Effect.map((rows) => rows.flatMap((row) => row.endpoints))
  )

/** Writes a `balance.low` event in the transaction of the charge. */
export const publishAlert = (
  sql: PgClient.PgClient,
  userId: UserId,
  event: EventBody,
  now: DateTime.Utc
) => publishEvent(sql, { type: "balance.low", userId, taskId: null, event, now })

/** How the alerts of a batch are published. */
export interface Alerting {
  readonly alert: (wallet: {
    readonly userId: UserId
    readonly available: Credits
    readonly threshold: Credits
  }) => EventBody
  readonly throttleSeconds: number
  readonly now: DateTime.Utc
}

/** A row of a settled batch. It is an alert if it has all three columns. */
interface Crossing {
  readonly userId: UserId | null
  readonly available: Credits | null
  readonly threshold: Credits | null
}

/** The rows of a settled batch, and the endpoints to notify of its `balance.low`. */
export interface Settlement<Row> {
  readonly rows: ReadonlyArray<Row>
  readonly endpoints: ReadonlyArray<EndpointId>
}

/** SQLSTATEs for an alert that is due, and for a call that is not covered or was settled before. */
const exceptionalStates = /^(?:GW428|GW409|23505)$/u

const isExceptional = (error: unknown) =>
  SqlError.isSqlError(error) &&
  Option.exists(sqlState(error), (state) => exceptionalStates.test(state))

/** Runs one statement, or a transaction of several if the charges cause an alert. */
export const settle = <Row extends Crossing, E>(
  sql: PgClient.PgClient,
  { alert, now }: Alerting,
  statement: (alerts: boolean) => Effect.Effect<ReadonlyArray<Row>, E | SqlError.SqlError>
) => {
  const withAlerts = Effect.gen(function* () {
    const rows = yield* statement(true)
    const notified = yield* Effect.forEach(rows, ({ available, threshold, userId }) =>
      userId === null || available === null || threshold === null
        ? Effect.succeed([])
        : publishAlert(sql, userId, alert({ userId, available, threshold }), now)
    )
    return { rows, endpoints: notified.flat() }
  }).pipe(sql.withTransaction)
  return statement(false).pipe(
    Effect.map((rows): Settlement<Row> => ({ rows, endpoints: [] })),
    Effect.catchIf(isExceptional, () => withAlerts),
    retryDeadlock,
    storeFailures
  )
}
