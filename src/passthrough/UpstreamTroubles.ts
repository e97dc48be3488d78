import { Effect, Metric } from "effect"
import type { AccountSetting } from "../domain/Provider.ts"
import type { AccountRefusal } from "../vendors/accounts/AccountRefusal.ts"
import { countOperatorFault } from "../vendors/accounts/OperatorFaultsTotal.ts"

/** Passthrough calls without a response, or refused for the service's own account. */
const troubles = Metric.counter("gateway_upstream_troubles_total", {
  description: "Upstream calls without a response, or refused for the service's own account",
  incremental: true
})

/** Counts and logs a call that an account did not execute. With a `refusal`, the operator must repair the account. */
export const report = ({ id }: AccountSetting, reason: string, refusal?: AccountRefusal) =>
  Effect.gen(function* () {
    yield* Metric.update(Metric.withAttributes(troubles, { account: id }), 1)
    if (refusal !== undefined) {
      yield* countOperatorFault(id, refusal === "scope" ? "model" : "account")
    }
    yield* Effect.logWarning(`The upstream account ${id} ${reason}`)
  })
