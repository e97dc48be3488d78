import { Context, DateTime, Effect, Layer } from "effect"
import { AppConfig } from "../../config/Config.ts"
import { partitionDaysAhead } from "../../domain/limits/Limits.ts"
import type { StoreUnavailable } from "../../domain/Problem.ts"
import { PartitionStore } from "./PartitionStore.ts"

/**
 * Keeps the delivery log and the receipts of calls for `LOG_RETENTION`, in daily partitions that are created in
 * advance, and the audit log for `AUDIT_RETENTION`, in monthly ones. docs/reference/privacy.md#retention, ADR 0053.
 */
export class LogRetention extends Context.Service<
  LogRetention,
  {
    /** Creates the partitions of the next days, drops expired ones, and removes rows that only those needed. */
    readonly maintain: Effect.Effect<void, StoreUnavailable>
    /** The same for the monthly partitions of the audit log. */
    readonly maintainAudit: Effect.Effect<void, StoreUnavailable>
  }
>()("gateway/process/LogRetention") {
  static readonly layer = Layer.effect(
    LogRetention,
    Effect.gen(function* () {
      const store = yield* PartitionStore
      const { retention } = yield* AppConfig
      return LogRetention.of({
        maintain: Effect.gen(function* () {
          const now = yield* DateTime.now
          const keepSince = DateTime.subtractDuration(now, retention.log)
          const { dropped } = yield* store.maintain(now, partitionDaysAhead, keepSince)
          yield* store.removeTaskWebhooks(keepSince)
          if (dropped > 0) yield* Effect.logInfo(`Dropped ${dropped} day partitions of the log`)
        }),
        maintainAudit: Effect.gen(function* () {
          const now = yield* DateTime.now
          const keepSince = DateTime.subtractDuration(now, retention.audit)
          const { dropped } = yield* store.maintainAudit(now, keepSince)
          if (dropped > 0) yield* Effect.logInfo(`Dropped ${dropped} months of the audit log`)
        })
      })
    })
  )
}
