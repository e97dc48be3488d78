import { PgClient } from "@effect/sql-pg"
import { Array, Context, Effect, Layer, Option, Schema } from "effect"
import type { DateTime } from "effect"
import { audited } from "../../db/Audited.ts"
import { Bytes, rowsOf, toDate } from "../../db/Rows.ts"
import { storeFailures } from "../../db/StoreFailures.ts"
import { UserId } from "../../domain/Ids.ts"

/** The request and response of a call, encrypted. */
export interface SealedCall {
  readonly user: UserId
  readonly call: string
  readonly sealed: Uint8Array
}

/** Which users have their calls kept, and the kept calls. ADR 0309 */
export class CallContentStore extends Context.Service<CallContentStore>()(
  "gateway/users/CallContentStore",
  {
    make: Effect.map(PgClient.PgClient, (sql) => ({
      keepers: sql`SELECT id FROM users WHERE keeps_calls`.pipe(
        rowsOf(Schema.Struct({ id: UserId })),
        Effect.map(Array.map(({ id }) => id)),
        storeFailures
      ),
      /** `None` if the user does not exist. */
      isKept: (user: UserId) =>
        sql`SELECT keeps_calls AS kept FROM users WHERE id = ${user} AND deleted_at IS NULL`.pipe(
          keptOf,
          storeFailures
        ),
      /**
       * Changes the setting and writes the audit entry in one transaction. Switching it off deletes the kept calls.
       * `None` if the user does not exist.
       */
      keep: (user: UserId, isKept: boolean) =>
        sql`SELECT kept FROM user_calls_keep(${user}, ${isKept}) WHERE kept IS NOT NULL`.pipe(
          keptOf,
          audited(
            sql,
            Option.map(() => ({ userId: user }))
          ),
          storeFailures
        ),
      /**
       * Stores a call and deletes all but the user's newest `max` calls. Does nothing if the user has switched the
       * setting off in the meantime.
       */
      add: ({ call, sealed, user }: SealedCall, max: number, now: DateTime.Utc) =>
        sql`
          SELECT call_content_add(${user}, ${call}::uuid, ${Buffer.from(sealed)}, ${max}::int,
            ${toDate(now)})`.pipe(Effect.asVoid, storeFailures),
      find: (user: UserId, call: string) =>
        sql`SELECT sealed FROM call_contents WHERE user_id = ${user} AND call_id = ${call}::uuid`.pipe(
          rowsOf(Schema.Struct({ sealed: Bytes })),
          Effect.map((rows) => Option.map(Array.head(rows), ({ sealed }) => sealed)),
          storeFailures
        ),
      /** Deletes at most `limit` rows and returns how many. */
      deleteBefore: (before: DateTime.Utc, limit: number) =>
        sql`
          DELETE FROM call_contents WHERE (user_id, call_id) IN (
            SELECT user_id, call_id FROM call_contents WHERE created_at < ${toDate(before)}
            ORDER BY created_at LIMIT ${limit})
          RETURNING true`.pipe(
          Effect.map((rows) => rows.length),
          storeFailures
        )
    }))
  }
) {
  static readonly layer = Layer.effect(CallContentStore, CallContentStore.make)
}

const keptOf = <E>(statement: Effect.Effect<ReadonlyArray<unknown>, E>) =>
  statement.pipe(
    rowsOf(Schema.Struct({ kept: Schema.Boolean })),
    Effect.map((rows) => Option.map(Array.head(rows), ({ kept }) => kept))
  )
