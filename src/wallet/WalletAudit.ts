import { DateTime, Duration, Effect, Option } from "effect"
import { heartbeatSeconds, walletAuditSeconds } from "../domain/Limits.ts"
import * as Duty from "../process/heartbeat/Duty.ts"
import { Wallet } from "./Wallet.ts"

/**
 * Recomputes the balances from the ledger at an interval, for the drift gauge. One process does it.
 * docs/reference/wallet.md#wallet-audit, ADR 0061.
 */
export const layer = Duty.layer(
  { name: "wallet audit", seconds: walletAuditSeconds },
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
          ? Effect.logError(`${drifting} spend limits of keys have impossible counts`)
          : Effect.void
      )
    )
  )
)

/** Turns come with heartbeats, so two turns are not exactly an interval apart. */
const turnSeconds = walletAuditSeconds - heartbeatSeconds

/** A process of an earlier release audits too. */
const isDue = (last: Option.Option<DateTime.Utc>, now: DateTime.Utc): boolean =>
  Option.match(last, {
    onNone: () => true,
    // A time in the future was written by a fast clock
    onSome: (at) => Math.abs(Duration.toSeconds(DateTime.distance(at, now))) >= turnSeconds
  })
