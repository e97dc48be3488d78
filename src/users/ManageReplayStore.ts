import { PgClient } from "@effect/sql-pg"
import { Array, Context, Effect, Layer, Schema } from "effect"
import type { DateTime } from "effect"
import { Bytes, rowsOf, toDate } from "../db/Rows.ts"
import { storeFailures } from "../db/StoreFailures.ts"
import type { RequestHash } from "../domain/RequestHash.ts"

/** A caller's idempotency key, and the request that claims it. */
export interface Claim {
  readonly caller: string
  readonly key: string
  readonly claim: string
}

export interface NewClaim extends Claim, RequestHash {
  readonly now: DateTime.Utc
  /** Records created before this time have expired. */
  readonly since: DateTime.Utc
  /**
   * An unanswered claim from before this time was lost with its process, so a repeat of its request may take it over.
   */
  readonly lostBefore: DateTime.Utc
}

/** The record of a key that was claimed earlier. Without a response, that request is still in progress. */
const ExistingRow = Schema.Struct({
  requestHash: Bytes,
  status: Schema.NullOr(Schema.Int),
  response: Schema.NullOr(Bytes)
})

export type ClaimOutcome =
  | { readonly _tag: "Claimed" }
  | ({ readonly _tag: "Existing" } & typeof ExistingRow.Type)

/** Responses to management POSTs, by `Idempotency-Key`. ADR 0218. */
export class ManageReplayStore extends Context.Service<ManageReplayStore>()(
  "gateway/users/ManageReplayStore",
  {
    make: Effect.map(PgClient.PgClient, (sql) => ({
      claim: claim(sql),
      /** Stores the response encrypted, because it may contain a secret. */
      complete: ({ caller, claim, key }: Claim, status: number, response: Uint8Array) =>
        sql`
          UPDATE manage_idempotency_keys SET status = ${status}, response = ${response}
          WHERE caller = ${caller} AND key = ${key} AND claim = ${claim}`.pipe(
          Effect.asVoid,
          storeFailures
        ),
      /** Removes the claim, so that the key can be used again. */
      release: ({ caller, claim, key }: Claim) =>
        sql`
          DELETE FROM manage_idempotency_keys
          WHERE caller = ${caller} AND key = ${key} AND claim = ${claim}`.pipe(
          Effect.asVoid,
          storeFailures
        ),
      /** Deletes up to `limit` expired keys of this API and as many of task creates; returns how many. */
      deleteOlder: deleteOlder(sql)
    }))
  }
) {
  static readonly layer = Layer.effect(ManageReplayStore, ManageReplayStore.make)
}

function claim(sql: PgClient.PgClient) {
  return Effect.fnUntraced(function* (c: NewClaim) {
    const claimed = yield* sql`
      INSERT INTO manage_idempotency_keys AS m (caller, key, request_hash, claim, created_at)
      VALUES (${c.caller}, ${c.key}, ${c.requestHash}, ${c.claim}, ${toDate(c.now)})
      ON CONFLICT (caller, key) DO UPDATE SET request_hash = excluded.request_hash,
        claim = excluded.claim, status = NULL, response = NULL, created_at = excluded.created_at
      WHERE m.created_at < ${toDate(c.since)} OR (
        m.status IS NULL AND m.request_hash = excluded.request_hash
        AND m.created_at < ${toDate(c.lostBefore)})
      RETURNING key`
    if (claimed.length > 0) return { _tag: "Claimed" } satisfies ClaimOutcome
    const existing = yield* sql`
      SELECT request_hash, status, response FROM manage_idempotency_keys
      WHERE caller = ${c.caller} AND key = ${c.key}`.pipe(
      rowsOf(ExistingRow),
      Effect.map(Array.head)
    )
    // The claim was released between the two statements, so the next try will succeed
    return existing._tag === "None"
      ? ({
          _tag: "Existing",
          requestHash: c.requestHash,
          status: null,
          response: null
        } satisfies ClaimOutcome)
      : ({ _tag: "Existing", ...existing.value } satisfies ClaimOutcome)
  }, storeFailures)
}

function deleteOlder(sql: PgClient.PgClient) {
  const tables = ["idempotency_keys", "manage_idempotency_keys"] as const
  // The age is repeated, because older releases of Postgres (such as 17.5) would delete a key that a request has used
  // again since it was selected
  return (before: DateTime.Utc, limit: number) =>
    Effect.forEach(
      tables,
      (table) =>
        sql`
          DELETE FROM ${sql(table)} WHERE ctid = ANY (ARRAY(
            SELECT ctid FROM ${sql(table)} WHERE created_at < ${toDate(before)} LIMIT ${limit}
          )) AND created_at < ${toDate(before)} RETURNING 1`,
      { concurrency: 1 }
    ).pipe(
      Effect.map((deleted) => deleted.reduce((sum, rows) => sum + rows.length, 0)),
      storeFailures
    )
}
