import { PgClient } from "@effect/sql-pg"
import { Array, Context, Effect, Layer, Option, Schema } from "effect"
import type { DateTime } from "effect"
import { SqlError } from "effect/sql"
import { audited, named } from "../db/Audited.ts"
import { publishAlert, retryDeadlock } from "../db/BatchWrites.ts"
import type { Alerting } from "../db/BatchWrites.ts"
import type { ScannedPage } from "../db/ListScan.ts"
import { Micro, rowOf, rowsOf, toDate } from "../db/Rows.ts"
import { sqlState, storeFailures } from "../db/StoreFailures.ts"
import type * as Credits from "../domain/Credits.ts"
import { UserId } from "../domain/Ids.ts"
import type { EndpointId } from "../domain/Ids.ts"
import type { StoreUnavailable } from "../domain/Problem.ts"
import { audits } from "./WalletAuditStore.ts"
import type { AuditedPage, AuditPage } from "./WalletAuditStore.ts"
import { entriesOf, search } from "./WalletEntryStore.ts"
import type { EntryPage, EntryRow } from "./WalletEntryStore.ts"

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
export class WalletStore extends Context.Service<
  WalletStore,
  {
    readonly find: (userId: UserId) => Effect.Effect<Option.Option<WalletRow>, StoreUnavailable>
    readonly add: (addition: Addition) => Effect.Effect<AdditionOutcome, StoreUnavailable>
    /** The ledger, newest first. */
    readonly search: (
      userId: UserId,
      page: EntryPage
    ) => Effect.Effect<ScannedPage<EntryRow>, StoreUnavailable>
    /** All entries about one task or call, oldest first. */
    readonly entriesOf: (
      userId: UserId,
      subjectId: string
    ) => Effect.Effect<ReadonlyArray<EntryRow>, StoreUnavailable>
    readonly setThreshold: (
      userId: UserId,
      threshold: Credits.Credits
    ) => Effect.Effect<Option.Option<WalletRow>, StoreUnavailable>
    /**
     * Publishes `balance.low` for charges that crossed the threshold during the throttle window. Runs once the window
     * is over, and only for balances that are still below the threshold. Returns the endpoints to notify.
     */
    readonly reportWithheld: (
      alerting: Alerting,
      walletsMax: number
    ) => Effect.Effect<ReadonlyArray<EndpointId>, StoreUnavailable>
    /** How many wallets the audit found to differ from their ledger or holds; must be 0. */
    readonly drift: Effect.Effect<number, StoreUnavailable>
    /** The users of those wallets, at most 20. */
    readonly drifting: Effect.Effect<ReadonlyArray<UserId>, StoreUnavailable>
    /** How many spend limits of keys have impossible counts; must be 0. */
    readonly budgetDrift: Effect.Effect<number, StoreUnavailable>
    /** Compares spend limits with holds and usage, unless that happened within the last `seconds`. */
    readonly auditBudgets: (
      now: DateTime.Utc,
      seconds: number
    ) => Effect.Effect<void, StoreUnavailable>
    /** When the last audit of all wallets finished. */
    readonly auditedAt: Effect.Effect<Option.Option<DateTime.Utc>, StoreUnavailable>
    /** When spend limits were last audited. */
    readonly budgetsAuditedAt: Effect.Effect<Option.Option<DateTime.Utc>, StoreUnavailable>
    /** Compares the next page of wallets with their new ledger entries and open holds (ADR 0061). */
    readonly audit: (page: AuditPage) => Effect.Effect<AuditedPage, StoreUnavailable>
    /** Records that a round has covered all wallets. */
    readonly endAudit: (wallets: number, now: DateTime.Utc) => Effect.Effect<void, StoreUnavailable>
  }
>()("gateway/wallet/WalletStore") {
  static readonly layer = Layer.effect(
    WalletStore,
    Effect.map(PgClient.PgClient, (sql) =>
      WalletStore.of({
        find: (userId) =>
          sql`SELECT * FROM wallets WHERE user_id = ${userId}`.pipe(
            rowsOf(WalletRow),
            Effect.map(Array.head),
            storeFailures
          ),
        add: add(sql),
        search: search(sql),
        entriesOf: entriesOf(sql),
        setThreshold: (userId, threshold) =>
          sql`SELECT * FROM wallet_threshold_set(${userId}, ${threshold})`.pipe(
            rowsOf(WalletRow),
            Effect.map(Array.head),
            audited(sql, Option.flatMap(named)),
            storeFailures
          ),
        reportWithheld: reportWithheld(sql),
        ...audits(sql)
      })
    )
  )
}

const faultOf = (state: string) => Option.fromUndefinedOr(additionFaults[state])

const CrossingRow = Schema.Struct({ userId: UserId, available: Micro, threshold: Micro })

function reportWithheld(sql: PgClient.PgClient): WalletStore["Service"]["reportWithheld"] {
  return ({ alert, now, throttleSeconds }, walletsMax) =>
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
