import { Effect } from "effect"
import { walletAuditSeconds } from "../domain/limits/Limits.ts"
import * as Duty from "../process/heartbeat/Duty.ts"
import { Wallet } from "./Wallet.ts"

/**
 * Recomputes balances from the ledger at an interval and reports differences in the drift gauge. A duty of one process.
 * docs/reference/wallet.md#wallet-audit, ADR 0061.
 */
export const layer = Duty.layer(
  { name: "wallet audit", seconds: walletAuditSeconds },
  Effect.flatMap(Wallet, (wallet) =>
    wallet.audit.pipe(
      Effect.tap((drifting) =>
        drifting > 0
          ? Effect.logError(`${drifting} wallets differ from their ledger or their open holds`)
          : Effect.void
      ),
      Effect.andThen(wallet.budgetDrift),
      Effect.tap((drifting) =>
        drifting > 0
          ? Effect.logError(`${drifting} spend limits of keys have impossible counts`)
          : Effect.void
      )
    )
  )
)
