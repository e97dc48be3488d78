import { Context, DateTime, Effect, Layer, Option, Stream } from "effect"
import type { Alerting } from "../db/BatchWrites.ts"
import type * as Credits from "../domain/Credits.ts"
import type { EndpointId, UserId } from "../domain/Ids.ts"
import {
  ledgerExportRowsMax,
  walletAuditEntriesMax,
  budgetAuditSeconds,
  walletAuditWalletsMax,
  withheldAlertsMax
} from "../domain/limits/Limits.ts"
import { problem } from "../domain/Problem.ts"
import type { Problem, StoreUnavailable } from "../domain/Problem.ts"
import type { EntryPage, EntryRow } from "./WalletEntryStore.ts"
import { WalletStore } from "./WalletStore.ts"
import type { WalletRow } from "./WalletStore.ts"

export { shownAmount } from "./WalletEntryStore.ts"
export type { EntryPage, EntryRow } from "./WalletEntryStore.ts"
export type { WalletRow } from "./WalletStore.ts"

/** A top-up or an adjustment. A repeated `operationId` has no effect. */
export interface WalletChange {
  readonly userId: UserId
  readonly amount: Credits.Credits
  readonly operationId: string
  readonly note: Option.Option<string>
  readonly traceId: string
}

/** The wallet after a change. `repeated`: an earlier request already made the change, and this one had no effect. */
export interface ChangedWallet {
  readonly wallet: WalletRow
  readonly repeated: boolean
}

/**
 * The prepaid wallet. `TaskStore` holds, settles and releases the price of a task in the transaction that changes the
 * task's state; `Metering` does the same for passthrough calls. docs/reference/wallet.md
 */
export class Wallet extends Context.Service<
  Wallet,
  Pick<
    WalletStore["Service"],
    "search" | "entriesOf" | "drift" | "drifting" | "budgetDrift" | "auditedAt" | "budgetsAuditedAt"
  > & {
    readonly get: (userId: UserId) => Effect.Effect<WalletRow, Problem | StoreUnavailable>
    readonly topUp: (
      change: WalletChange
    ) => Effect.Effect<ChangedWallet, Problem | StoreUnavailable>
    /** Fails with 2010 if the adjusted balance would be less than the held amount. */
    readonly adjust: (
      change: WalletChange
    ) => Effect.Effect<ChangedWallet, Problem | StoreUnavailable>
    readonly setThreshold: (
      userId: UserId,
      threshold: Credits.Credits
    ) => Effect.Effect<WalletRow, Problem | StoreUnavailable>
    /** Publishes withheld alerts that have become due; returns the endpoints to notify. */
    readonly reportWithheld: (
      alerting: Alerting
    ) => Effect.Effect<ReadonlyArray<EndpointId>, StoreUnavailable>
    /** All ledger entries that match the filters, newest first, read page by page. */
    readonly ledger: (
      userId: UserId,
      filters: Omit<EntryPage, "before" | "limit">
    ) => Stream.Stream<EntryRow, StoreUnavailable>
    /** Runs one audit round, which compares every wallet with its ledger and open holds. Returns how many differ. */
    readonly audit: Effect.Effect<number, StoreUnavailable>
  }
>()("gateway/wallet/Wallet") {
  static readonly layer = Layer.effect(
    Wallet,
    Effect.gen(function* () {
      const store = yield* WalletStore

      const get = Effect.fn("Wallet.get")(function* (userId: UserId) {
        return yield* known(userId, yield* store.find(userId))
      })

      const add = Effect.fnUntraced(function* (
        kind: "top_up" | "adjustment",
        change: WalletChange
      ) {
        const outcome = yield* store.add({
          ...change,
          kind,
          note: Option.getOrNull(change.note),
          now: yield* DateTime.now
        })
        switch (outcome._tag) {
          case "Added":
            return { wallet: outcome.wallet, repeated: outcome.repeated }
          case "BelowHeld":
            return yield* problem(2010, "The adjustment would leave less than the held amount")
          case "TooMuch":
            return yield* problem(2010, "The balance would exceed the maximum of a wallet")
          case "Reused":
            return yield* problem(2008, "This Idempotency-Key was used before with another request")
          case "NoWallet":
            return yield* noUser(change.userId)
        }
      })

      return Wallet.of({
        get,
        topUp: (change) => add("top_up", change),
        adjust: (change) => add("adjustment", change),
        setThreshold: Effect.fn("Wallet.setThreshold")(function* (userId, threshold) {
          return yield* known(userId, yield* store.setThreshold(userId, threshold))
        }),
        search: store.search,
        entriesOf: store.entriesOf,
        reportWithheld: (alerting) => store.reportWithheld(alerting, withheldAlertsMax),
        ledger: ledger(store),
        drift: store.drift,
        drifting: store.drifting,
        budgetDrift: store.budgetDrift,
        auditedAt: store.auditedAt,
        budgetsAuditedAt: store.budgetsAuditedAt,
        audit: audit(store)
      })
    })
  )
}

const ledger =
  (store: WalletStore["Service"]) =>
  (userId: UserId, filters: Omit<EntryPage, "before" | "limit">) =>
    Stream.paginate(Option.none<bigint>(), (before) =>
      Effect.map(
        store.search(userId, { ...filters, before, limit: ledgerExportRowsMax }),
        ({ end, rows }) => {
          const last = rows.length < ledgerExportRowsMax ? undefined : rows.at(-1)
          const next = last?.seq ?? (end === null ? undefined : BigInt(end))
          return [rows, Option.map(Option.fromUndefinedOr(next), Option.some)] as const
        }
      )
    )

const audit = (store: WalletStore["Service"]) =>
  Effect.gen(function* () {
    let after = Option.none<UserId>()
    let wallets = 0
    do {
      const page = yield* store.audit({
        after,
        wallets: walletAuditWalletsMax,
        entries: walletAuditEntriesMax,
        now: yield* DateTime.now
      })
      wallets += page.wallets
      after = page.last
    } while (Option.isSome(after))
    yield* store.endAudit(wallets, yield* DateTime.now)
    yield* store.auditBudgets(yield* DateTime.now, budgetAuditSeconds)
    return yield* store.drift
  })

const noUser = (userId: UserId) => problem(2005, `There is no user ${userId}`)

const known = (userId: UserId, wallet: Option.Option<WalletRow>) =>
  Effect.mapError(Effect.fromOption(wallet), () => noUser(userId))
