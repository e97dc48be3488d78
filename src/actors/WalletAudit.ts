import { Duration, Effect, Schedule } from "effect"
import { Singleton } from "effect/cluster"
import { walletAuditSeconds } from "../domain/Limits.ts"
import { Wallet } from "../services/Wallet.ts"

/** Recomputes balances from the ledger, round after round, for the drift gauge (contract 6; ADR 0061). */
export const layer = Singleton.make(
  "WalletAudit",
  Effect.flatMap(Wallet, (wallet) =>
    wallet.audit.pipe(
      Effect.tap((drifting) =>
        drifting > 0
          ? Effect.logError(`${drifting} wallets differ from their ledger or their open holds`)
          : Effect.void
      ),
      Effect.catchCause((cause) => Effect.logWarning("The wallet audit failed", cause)),
      Effect.repeat(Schedule.spaced(Duration.seconds(walletAuditSeconds))),
      Effect.asVoid
    )
  )
)
