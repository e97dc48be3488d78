import { Effect, Metric } from "effect"
import type { AccountSetting } from "../domain/Provider.ts"

/** Passthrough calls without a response, or refused for the service's own account. */
const troubles = Metric.counter("gateway_upstream_troubles_total", {
  description: "Upstream calls without a response, or refused for the service's own account",
  incremental: true
})

/** Counts and logs a call that an account did not do. */
export const report = (account: AccountSetting, reason: string) =>
  Effect.andThen(
    Metric.update(Metric.withAttributes(troubles, { account: account.id }), 1),
    Effect.logWarning(`The upstream account ${account.id} ${reason}`)
  )
