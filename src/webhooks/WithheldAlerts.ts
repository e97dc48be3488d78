import { DateTime, Duration, Effect, Layer, Schedule } from "effect"
import { AppConfig } from "../config/Config.ts"
import { withheldAlertSeconds } from "../domain/Limits.ts"
import { WorkNotifier } from "../process/WorkNotifier.ts"
import { Wallet } from "../wallet/Wallet.ts"
import { balanceLow } from "./Events.ts"

/**
 * Reports the balance alerts that the throttle withheld, when its window is over. Every process looks; a
 * wallet is reported by the one that locks it. docs/reference/wallet.md#balance-alert, ADR 0142.
 */
export const layer = Layer.effectDiscard(
  Effect.forkScoped(
    Effect.gen(function* () {
      const { balanceAlertThrottle } = yield* AppConfig
      const wallet = yield* Wallet
      const notifier = yield* WorkNotifier
      const throttleSeconds = Duration.toSeconds(balanceAlertThrottle)
      const report = Effect.gen(function* () {
        const now = yield* DateTime.now
        const endpoints = yield* wallet.reportWithheld({
          alert: (crossing) => balanceLow(crossing, now),
          throttleSeconds,
          now
        })
        if (endpoints.length > 0) yield* notifier.notifyEndpoints(endpoints)
      })
      return yield* report.pipe(
        Effect.catchCause((cause) => Effect.logWarning("Withheld alerts were not reported", cause)),
        Effect.repeat(Schedule.spaced(Duration.seconds(withheldAlertSeconds))),
        Effect.asVoid
      )
    })
  )
)
