import type { PgClient } from "@effect/sql-pg"
import { DateTime, Effect, Schema } from "effect"
import type * as Credits from "../domain/Credits.ts"
import { UserId } from "../domain/Ids.ts"
import type { EndpointId } from "../domain/Ids.ts"
import { groupCommit, outcomes, publishAlert, retryDeadlock } from "./Batches.ts"
import { storeFailures } from "./Failures.ts"
import { makeGroupCommit } from "./GroupCommit.ts"
import { Micro, rowsOf } from "./Rows.ts"
import type { EventBody } from "./TaskStore.ts"

/** Freezes the price of a passthrough call before it is made. */
export interface Hold {
  readonly userId: UserId
  /** A UUID; its operation id is `hold:<id>`. */
  readonly id: string
  readonly kind: "call"
  readonly amount: Credits.Credits
  readonly traceId: string
  readonly now: DateTime.Utc
}

export type HoldOutcome =
  | {
      readonly _tag: "Held"
      /** Available after the hold. */
      readonly balance: Credits.Credits
      /** The id was held before: nothing was changed. */
      readonly repeated: boolean
    }
  | { readonly _tag: "BalanceTooLow" }

/** Settles a call's hold and releases the rest. */
export interface Close {
  readonly id: string
  /** What the call costs; what exceeds the hold is not charged (contract 6). */
  readonly captured: Credits.Credits
  /** Makes the `balance.low` event when this charge crosses the threshold. */
  readonly alert: (wallet: {
    readonly userId: UserId
    readonly available: Credits.Credits
    readonly threshold: Credits.Credits
  }) => EventBody
  readonly throttleSeconds: number
  readonly now: DateTime.Utc
}

export type CloseOutcome =
  | {
      readonly _tag: "Closed"
      readonly captured: Credits.Credits
      /** Available after the charge. */
      readonly balance: Credits.Credits
      /** The hold was closed before, with `captured`: nothing was changed. */
      readonly repeated: boolean
      readonly endpoints: ReadonlyArray<EndpointId>
    }
  /** Nothing was ever held under this id. */
  | { readonly _tag: "Unknown" }

const HoldRow = Schema.Struct({
  n: Schema.Int,
  outcome: Schema.Literals(["held", "repeated", "balance_too_low"]),
  balance: Schema.NullOr(Micro)
})

const holdOutcome = (row: typeof HoldRow.Type | undefined): HoldOutcome =>
  row === undefined || row.outcome === "balance_too_low" || row.balance === null
    ? { _tag: "BalanceTooLow" }
    : { _tag: "Held", balance: row.balance, repeated: row.outcome === "repeated" }

/** `WalletStore.hold`: holds that arrive together are committed together. */
export const makeHold = (sql: PgClient.PgClient) =>
  makeGroupCommit(
    (holds: ReadonlyArray<Hold>) =>
      sql`SELECT * FROM call_hold_many(${sql.json(
        holds.map((hold, n) => ({
          n,
          id: hold.id,
          user_id: hold.userId,
          amount: String(hold.amount),
          trace: hold.traceId,
          now: DateTime.formatIso(hold.now)
        }))
      )})`.pipe(
        rowsOf(HoldRow),
        Effect.map((rows) => outcomes(holds, rows, holdOutcome)),
        retryDeadlock,
        storeFailures
      ),
    groupCommit
  )

const CloseRow = Schema.Struct({
  n: Schema.Int,
  outcome: Schema.Literals(["closed", "repeated", "unknown"]),
  captured: Micro,
  userId: Schema.NullOr(UserId),
  alert: Schema.Boolean,
  available: Schema.NullOr(Micro),
  threshold: Schema.NullOr(Micro)
})

/** `WalletStore.close`: closings that arrive together are committed together. */
export const makeClose = (sql: PgClient.PgClient) =>
  makeGroupCommit(
    (closes: ReadonlyArray<Close>) =>
      sql`SELECT * FROM call_close_many(${sql.json(
        closes.map((close, n) => ({
          n,
          id: close.id,
          captured: String(close.captured),
          throttle: close.throttleSeconds,
          now: DateTime.formatIso(close.now)
        }))
      )})`.pipe(
        rowsOf(CloseRow),
        Effect.flatMap(Effect.forEach((row) => closeOutcome(sql, row, closes[row.n]))),
        Effect.map((rows) => outcomes(closes, rows, (row) => row?.outcome ?? unknownHold)),
        sql.withTransaction,
        retryDeadlock,
        storeFailures
      ),
    groupCommit
  )

const unknownHold: CloseOutcome = { _tag: "Unknown" }

const closeOutcome = Effect.fnUntraced(function* (
  sql: PgClient.PgClient,
  row: typeof CloseRow.Type,
  close: Close | undefined
) {
  const { alert, available, captured, n, threshold, userId } = row
  if (close === undefined || userId === null || available === null || threshold === null) {
    return { n, outcome: unknownHold }
  }
  const endpoints = alert
    ? yield* publishAlert(sql, userId, close.alert({ userId, available, threshold }), close.now)
    : []
  const repeated = row.outcome === "repeated"
  const outcome: CloseOutcome = {
    _tag: "Closed",
    captured,
    balance: available,
    repeated,
    endpoints
  }
  return { n, outcome }
})
