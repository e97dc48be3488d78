import { PgClient } from "@effect/sql-pg"
import { Context, Effect, Layer, Schema } from "effect"
import type { DateTime } from "effect"
import { rowsOf, toDate } from "../../db/Rows.ts"
import { storeFailures } from "../../db/StoreFailures.ts"
import type { TaskId } from "../../domain/Ids.ts"
import type { StoreUnavailable } from "../../domain/Problem.ts"

/** Submits of other tasks to an account around a time. */
export interface ConcurrentAttempts {
  /** All values of their handles; the vendor's job ids are among them. */
  readonly handleValues: ReadonlySet<string>
  /** Submits whose outcome is unknown: any job without an owner may be theirs. */
  readonly unresolved: number
}

/** Vendor attempts across tasks, for reconciliation. docs/reference/vendors.md#reconciliation */
export class VendorAttemptStore extends Context.Service<
  VendorAttemptStore,
  {
    readonly concurrent: (of: {
      readonly taskId: TaskId
      readonly accountId: string
      readonly from: DateTime.Utc
      readonly until: DateTime.Utc
    }) => Effect.Effect<ConcurrentAttempts, StoreUnavailable>
  }
>()("gateway/tasks/submission/VendorAttemptStore") {
  static readonly layer = Layer.effect(
    VendorAttemptStore,
    Effect.map(PgClient.PgClient, (sql) =>
      VendorAttemptStore.of({
        concurrent: ({ accountId, from, taskId, until }) =>
          sql`
            SELECT state, handle FROM vendor_attempts
            WHERE started_at BETWEEN ${toDate(from)} AND ${toDate(until)}
              AND account_id = ${accountId} AND task_id <> ${taskId}
              AND state <> 'refused'`.pipe(
            rowsOf(Row),
            Effect.map((rows): ConcurrentAttempts => ({
              handleValues: new Set(
                rows.flatMap(({ handle }) => Object.values(handle ?? {}).map(String))
              ),
              unresolved: rows.filter(({ state }) => state !== "submitted").length
            })),
            storeFailures
          )
      })
    )
  )
}

const Row = Schema.Struct({
  state: Schema.String,
  handle: Schema.NullOr(Schema.Record(Schema.String, Schema.Json))
})
