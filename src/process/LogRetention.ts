import { Context, DateTime, Effect, Layer } from "effect"
import { deliveryLogDays, partitionDaysAhead } from "../domain/Limits.ts"
import type { StoreUnavailable } from "../domain/Problem.ts"
import { PartitionStore } from "./PartitionStore.ts"

/**
 * Keeps the delivery log and the receipts of calls for 30 days, in day partitions made ahead.
 * docs/reference/webhooks.md#delivery-log, ADR 0053, ADR 0102.
 */
export class LogRetention extends Context.Service<
  LogRetention,
  {
    /** Makes the partitions of the next days and drops those that are too old. */
    readonly maintain: Effect.Effect<void, StoreUnavailable>
  }
>()("gateway/process/LogRetention") {
  static readonly layer = Layer.effect(
    LogRetention,
    Effect.map(PartitionStore, (store) =>
      LogRetention.of({
        maintain: Effect.gen(function* () {
          const now = yield* DateTime.now
          const keepSince = DateTime.subtract(now, { days: deliveryLogDays })
          const { dropped } = yield* store.maintain(now, partitionDaysAhead, keepSince)
          if (dropped > 0) yield* Effect.logInfo(`Dropped ${dropped} day partitions of the log`)
        })
      })
    )
  )
}
