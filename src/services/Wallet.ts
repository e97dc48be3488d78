import { Context, DateTime, Effect, Layer, Option } from "effect"
import type * as Credits from "../domain/Credits.ts"
import type { UserId } from "../domain/Ids.ts"
import { problem } from "../domain/Problem.ts"
import type { Problem, StoreUnavailable } from "../domain/Problem.ts"
import { WalletStore } from "../store/WalletStore.ts"
import type { EntryRow, WalletRow } from "../store/WalletStore.ts"

export type { EntryRow, WalletRow } from "../store/WalletStore.ts"

/** What changes a wallet from outside: who, how much, and the id that makes a repeat harmless. */
export interface WalletChange {
  readonly userId: UserId
  readonly amount: Credits.Credits
  readonly operationId: string
  readonly note: Option.Option<string>
  readonly traceId: string
}

/**
 * The prepaid wallet. Task holds are taken, settled and released inside the transactions that move
 * the task (`TaskStore`), by the SQL functions `wallet_hold` and `wallet_close`. Contract 6.
 */
export class Wallet extends Context.Service<
  Wallet,
  {
    readonly get: (userId: UserId) => Effect.Effect<WalletRow, Problem | StoreUnavailable>
    readonly topUp: (change: WalletChange) => Effect.Effect<WalletRow, Problem | StoreUnavailable>
    /** Fails with 2010 when less than what is held would be left. */
    readonly adjust: (change: WalletChange) => Effect.Effect<WalletRow, Problem | StoreUnavailable>
    readonly setThreshold: (
      userId: UserId,
      threshold: Credits.Credits
    ) => Effect.Effect<WalletRow, Problem | StoreUnavailable>
    readonly entries: (
      userId: UserId,
      page: { readonly before: Option.Option<bigint>; readonly limit: number }
    ) => Effect.Effect<ReadonlyArray<EntryRow>, StoreUnavailable>
    /** Wallets that differ from their ledger or holds; must read 0. */
    readonly drift: Effect.Effect<number, StoreUnavailable>
  }
>()("gateway/services/Wallet") {
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
        yield* get(change.userId)
        const outcome = yield* store.add({
          ...change,
          kind,
          note: Option.getOrNull(change.note),
          now: yield* DateTime.now
        })
        if (outcome._tag === "BelowHeld") {
          return yield* problem(2010, "The adjustment would leave less than what is held")
        }
        return outcome.wallet
      })

      return Wallet.of({
        get,
        topUp: (change) => add("top_up", change),
        adjust: (change) => add("adjustment", change),
        setThreshold: Effect.fn("Wallet.setThreshold")(function* (userId, threshold) {
          return yield* known(userId, yield* store.setThreshold(userId, threshold))
        }),
        entries: store.entries,
        drift: store.drift
      })
    })
  )
}

const known = (userId: UserId, wallet: Option.Option<WalletRow>) =>
  Effect.mapError(Effect.fromOption(wallet), () => problem(2005, `There is no user ${userId}`))
