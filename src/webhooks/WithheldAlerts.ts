import { DateTime, Duration, Effect } from "effect"
import { AppConfig } from "../config/Config.ts"
import { withheldAlertSeconds } from "../domain/limits/Limits.ts"
import * as Duty from "../process/heartbeat/Duty.ts"
import { WorkNotifier } from "../process/signals/WorkNotifier.ts"
import { Wallet } from "../wallet/Wallet.ts"
import { balanceLow } from "./Events.ts"

/**
 * Reports balance alerts that were withheld by the throttle once its window is over. A duty of one process.
 * docs/reference/wallet.md#balance-alert, ADR 0256.
 */
export const layer = Duty.layer(
  { name: "withheld alerts", seconds: withheldAlertSeconds },
  Effect.gen(function* () {
    const { balanceAlertThrottle } = yield* AppConfig
    const wallet = yield* Wallet
    const notifier = yield* WorkNotifier
    const now = yield* DateTime.now
    const endpoints = yield* wallet.reportWithheld({
      alert: (crossing) => balanceLow(crossing, now),
      throttleSeconds: Duration.toSeconds(balanceAlertThrottle),
      now
    })
    if (endpoints.length > 0) yield* notifier.notifyEndpoints(endpoints)
  })
)
