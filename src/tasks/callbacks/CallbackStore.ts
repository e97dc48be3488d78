import { PgClient } from "@effect/sql-pg"
import { Context, Effect, Layer, Schema } from "effect"
import type { DateTime } from "effect"
import { rowsOf, toDate } from "../../db/Rows.ts"
import { storeFailures } from "../../db/StoreFailures.ts"
import { TaskId } from "../../domain/Ids.ts"
import type { StoreUnavailable } from "../../domain/Problem.ts"

/** A callback with a valid signature. */
export interface VerifiedCallback {
  /** SHA-256 of the signed message. */
  readonly digest: Uint8Array
  /** From then on its timestamp is too old to be accepted. */
  readonly expiresAt: DateTime.Utc
  readonly taskId: TaskId
  /** Another process runs the task and must be notified. */
  readonly isForOwner: boolean
}

/** Callbacks of vendors: those that were accepted, and the owners of tasks that they notify. ADR 0107. */
export class CallbackStore extends Context.Service<
  CallbackStore,
  {
    /** `false`: the callback was accepted before, nothing was changed. */
    readonly accept: (callback: VerifiedCallback) => Effect.Effect<boolean, StoreUnavailable>
    /** The tasks of this owner for which another process accepted a callback; each is returned once. */
    readonly calledOf: (owner: string) => Effect.Effect<ReadonlyArray<TaskId>, StoreUnavailable>
    readonly deleteExpired: (now: DateTime.Utc) => Effect.Effect<void, StoreUnavailable>
  }
>()("gateway/tasks/callbacks/CallbackStore") {
  static readonly layer = Layer.effect(
    CallbackStore,
    Effect.map(PgClient.PgClient, (sql) =>
      CallbackStore.of({
        accept: ({ digest, expiresAt, isForOwner, taskId }) =>
          sql`
            WITH accepted AS (
              INSERT INTO vendor_callbacks (digest, expires_at) VALUES (${digest}, ${toDate(expiresAt)})
              ON CONFLICT (digest) DO NOTHING RETURNING digest
            ), notified AS (
              UPDATE runs SET callback_received = true
              WHERE task_id = ${taskId} AND ${isForOwner}::boolean AND EXISTS (SELECT FROM accepted)
            )
            SELECT count(*)::integer AS n FROM accepted`.pipe(
            rowsOf(Count),
            Effect.map((rows) => rows.some(({ n }) => n > 0)),
            storeFailures
          ),
        calledOf: (owner) =>
          sql`
            UPDATE runs SET callback_received = false WHERE owner = ${owner} AND callback_received
            RETURNING task_id`.pipe(
            rowsOf(Called),
            Effect.map((rows) => rows.map(({ taskId }) => taskId)),
            storeFailures
          ),
        deleteExpired: (now) =>
          sql`DELETE FROM vendor_callbacks WHERE expires_at < ${toDate(now)}`.pipe(
            Effect.asVoid,
            storeFailures
          )
      })
    )
  )
}

const Count = Schema.Struct({ n: Schema.Int })
const Called = Schema.Struct({ taskId: TaskId })
