import { DateTime, Duration, Effect, Option, Schedule } from "effect"
import { Singleton } from "effect/cluster"
import { walletAuditSeconds } from "../domain/Limits.ts"
import { Wallet } from "./Wallet.ts"

/**
 * Recomputes the balances from the ledger at an interval, for the drift gauge. Of several processes one
 * does it: the others see that a round has just ended. docs/reference/wallet.md#wallet-audit, ADR 0061.
 */
export const layer = Singleton.make(
  "WalletAudit",
  Effect.flatMap(Wallet, (wallet) =>
    wallet.auditedAt.pipe(
      Effect.flatMap((last) => Effect.map(DateTime.now, (now) => isDue(last, now))),
      Effect.flatMap((due) => (due ? wallet.audit : Effect.succeed(0))),
      Effect.tap((drifting) =>
        drifting > 0
          ? Effect.logError(`${drifting} wallets differ from their ledger or their open holds`)
          : Effect.void
      ),
      Effect.andThen(wallet.budgetDrift),
      Effect.tap((drifting) =>
        drifting > 0
          ? Effect.logError(`${drifting} spend limits of keys count what cannot be right`)
          : Effect.void
      ),
      Effect.catchCause((cause) => Effect.logWarning("The wallet audit failed", cause)),
      Effect.repeat(Schedule.spaced(Duration.seconds(walletAuditSeconds))),
      Effect.asVoid
    )
  )
)

const isDue = (last: Option.Option<DateTime.Utc>, now: DateTime.Utc): boolean =>
  Option.match(last, {
    onNone: () => true,
    // A time in the future was written by a clock that was ahead
    onSome: (at) => Math.abs(Duration.toSeconds(DateTime.distance(at, now))) >= walletAuditSeconds
  })
