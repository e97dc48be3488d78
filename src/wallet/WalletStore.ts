import { PgClient } from "@effect/sql-pg"
import { Array, Context, Effect, Layer, Option, Schema } from "effect"
import type { DateTime } from "effect"
import { SqlError } from "effect/sql"
import { audited, named } from "../db/Audited.ts"
import { publishAlert, retryDeadlock } from "../db/BatchWrites.ts"
import type { Alerting } from "../db/BatchWrites.ts"
import { Micro, rowOf, rowsOf, toDate } from "../db/Rows.ts"
import { sqlState, storeFailures } from "../db/StoreFailures.ts"
import type * as Credits from "../domain/Credits.ts"
import { UserId } from "../domain/Ids.ts"
import { audits } from "./WalletAuditStore.ts"
import { entriesOf, search } from "./WalletEntryStore.ts"

export class WalletRow extends Schema.Class<WalletRow>("WalletRow")({
  userId: UserId,
  settled: Micro,
  held: Micro,
  triggerThreshold: Micro,
  state: Schema.Literals(["NORMAL", "ALERTED"])
}) {}

/** A change of the settled balance by the operator. */
export interface Addition {
  readonly userId: UserId
  readonly kind: "top_up" | "adjustment"
  readonly amount: Credits.Credits
  /** A repeated id has no effect. docs/reference/wallet.md#top-ups-and-adjustments */
  readonly operationId: string
  readonly note: string | null
  readonly traceId: string
  readonly now: DateTime.Utc
}

export type AdditionOutcome =
  /** `repeated`: this change had no effect, and `wallet` is the result of the first one. */
  | { readonly _tag: "Added"; readonly wallet: WalletRow; readonly repeated: boolean }
  /** The adjusted balance would be less than the held amount. */
  | { readonly _tag: "BelowHeld" }
  /** The balance would exceed the maximum of a wallet. */
  | { readonly _tag: "TooMuch" }
  /** The operation id was already used for a different change. */
  | { readonly _tag: "Reused" }
  | { readonly _tag: "NoWallet" }

/** Outcomes by the SQLSTATE that `wallet_top_up` raises. */
const additionFaults: Readonly<Record<string, AdditionOutcome>> = {
  GW404: { _tag: "NoWallet" },
  GW409: { _tag: "BelowHeld" },
  GW410: { _tag: "TooMuch" },
  GW422: { _tag: "Reused" }
}

/**
 * Wallets and their ledger. `TaskStore` writes the holds of tasks, and `CallStore` those of passthrough calls, in their
 * own transactions.
 */
export class WalletStore extends Context.Service<WalletStore>()("gateway/wallet/WalletStore", {
  make: Effect.map(PgClient.PgClient, (sql) => ({
    find: (userId: UserId) =>
      sql`SELECT * FROM wallets WHERE user_id = ${userId}`.pipe(
        rowsOf(WalletRow),
        Effect.map(Array.head),
        storeFailures
      ),
    add: add(sql),
    /** The ledger, newest first. */
    search: search(sql),
    /** All entries about one task or call, oldest first. */
    entriesOf: entriesOf(sql),
    setThreshold: (userId: UserId, threshold: Credits.Credits) =>
      sql`SELECT * FROM wallet_threshold_set(${userId}, ${threshold})`.pipe(
        rowsOf(WalletRow),
        Effect.map(Array.head),
        audited(sql, Option.flatMap(named)),
        storeFailures
      ),
    /**
     * Publishes `balance.low` for charges that crossed the threshold during the throttle window. Runs once the window
     * is over, and only for balances that are still below the threshold. Returns the endpoints to notify.
     */
    reportWithheld: reportWithheld(sql),
    ...audits(sql)
  }))
}) {
  static readonly layer = Layer.effect(WalletStore, WalletStore.make)
}

const faultOf = (state: string) => Option.fromUndefinedOr(additionFaults[state])

const CrossingRow = Schema.Struct({ userId: UserId, available: Micro, threshold: Micro })

function reportWithheld(sql: PgClient.PgClient) {
  return ({ alert, now, throttleSeconds }: Alerting, walletsMax: number) =>
    sql`
      SELECT * FROM wallet_alerts_report(
        make_interval(secs => ${throttleSeconds}), ${walletsMax}::int, ${toDate(now)})`.pipe(
      rowsOf(CrossingRow),
      Effect.flatMap(
        Effect.forEach((crossing) => publishAlert(sql, crossing.userId, alert(crossing), now))
      ),
      Effect.map((endpoints) => endpoints.flat()),
      sql.withTransaction,
      retryDeadlock,
      storeFailures
    )
}

function add(sql: PgClient.PgClient) {
  const Row = Schema.Struct({ ...WalletRow.fields, repeated: Schema.Boolean })
  return (a: Addition) =>
    sql`
      SELECT (w).*, repeated FROM wallet_top_up(
        ${a.userId}, ${a.kind}, ${a.amount}, ${a.operationId}, ${a.note}, ${a.traceId}, ${toDate(a.now)}
      )`.pipe(
      rowOf(Row),
      Effect.map(({ repeated, ...wallet }): AdditionOutcome => ({
        _tag: "Added",
        wallet: new WalletRow(wallet),
        repeated
      })),
      audited(sql, (outcome) =>
        outcome._tag === "Added" && !outcome.repeated ? named() : Option.none()
      ),
      Effect.catchIf(SqlError.isSqlError, (error) =>
        Effect.mapError(Effect.fromOption(Option.flatMap(sqlState(error), faultOf)), () => error)
      ),
      storeFailures
    )
}
