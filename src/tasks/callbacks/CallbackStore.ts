import { PgClient } from "@effect/sql-pg"
import { Context, Effect, Layer, Schema } from "effect"
import type { DateTime } from "effect"
import { rowOf, toDate } from "../../db/Rows.ts"
import { storeFailures } from "../../db/StoreFailures.ts"
import type { TaskId } from "../../domain/Ids.ts"

/** A callback that has passed verification. */
export interface VerifiedCallback {
  /** SHA-256 of the signed message. For an unsigned callback: of the task and the interval. */
  readonly digest: Uint8Array
  /** After this time the timestamp is too old to be accepted, so the record is no longer needed. */
  readonly expiresAt: DateTime.Utc
  readonly taskId: TaskId
  /** The account of its job. */
  readonly accountId: string
  readonly now: DateTime.Utc
  /** When to poll the task. */
  readonly dueAt: DateTime.Utc
}

/** Accepted callbacks of vendors. ADR 0107. */
export class CallbackStore extends Context.Service<CallbackStore>()(
  "gateway/tasks/callbacks/CallbackStore",
  {
    make: Effect.map(PgClient.PgClient, (sql) => ({
      /**
       * Makes the task due at `dueAt`, or at the end of its current step if it is in hand. `Repeated`: the callback had
       * already been accepted, and nothing was changed. Also records that the vendor sends callbacks for the account.
       */
      accept: ({ accountId, digest, dueAt, expiresAt, now, taskId }: VerifiedCallback) =>
        sql`
          WITH accepted AS (
            INSERT INTO vendor_callbacks (digest, expires_at) VALUES (${digest}, ${toDate(expiresAt)})
            ON CONFLICT (digest) DO NOTHING RETURNING digest
          ), notified AS (
            UPDATE runs SET callback_received = true, due_at = least(due_at, ${toDate(dueAt)})
            WHERE task_id = ${taskId} AND EXISTS (SELECT FROM accepted)
            RETURNING owner
          ), called AS (
            INSERT INTO callback_times (account_id, called_at)
            SELECT ${accountId}, ${toDate(now)} FROM accepted WHERE NOT EXISTS (
              SELECT FROM callback_times
              WHERE account_id = ${accountId} AND called_at > ${toDate(now)}::timestamptz - interval '10 seconds'
            )
            ON CONFLICT (account_id) DO UPDATE SET called_at = excluded.called_at
          )
          SELECT EXISTS (SELECT FROM accepted) AS is_new,
            EXISTS (SELECT FROM notified WHERE owner IS NOT NULL) AS in_hand`.pipe(
          rowOf(Accepted),
          Effect.map(({ inHand, isNew }) => (!isNew ? "Repeated" : inHand ? "InHand" : "Due")),
          storeFailures
        ),
      deleteExpired: (now: DateTime.Utc) =>
        sql`DELETE FROM vendor_callbacks WHERE expires_at < ${toDate(now)}`.pipe(
          Effect.asVoid,
          storeFailures
        )
    }))
  }
) {
  static readonly layer = Layer.effect(CallbackStore, CallbackStore.make)
}

const Accepted = Schema.Struct({ isNew: Schema.Boolean, inHand: Schema.Boolean })
