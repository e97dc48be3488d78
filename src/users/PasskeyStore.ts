import { PgClient } from "@effect/sql-pg"
import { Array, Context, Effect, Layer, Option, Schema } from "effect"
import type { DateTime } from "effect"
import { audited } from "../db/Audited.ts"
import { Bytes, rowsOf, Time, toDate } from "../db/Rows.ts"
import { storeFailures } from "../db/StoreFailures.ts"
import { PasskeyId, UserId } from "../domain/Ids.ts"
import type { SessionId } from "../domain/Ids.ts"
import type { PageRequest } from "../domain/PageRequest.ts"

/** A passkey as shown to its user. */
export class PasskeyRow extends Schema.Class<PasskeyRow>("PasskeyRow")({
  id: PasskeyId,
  name: Schema.String,
  createdAt: Time,
  lastUsedAt: Schema.NullOr(Time)
}) {}

export interface NewPasskey {
  readonly id: PasskeyId
  readonly userId: UserId
  readonly credentialId: Uint8Array
  /** In COSE format. */
  readonly publicKey: Uint8Array
  readonly signCount: number
  readonly name: string
  readonly now: DateTime.Utc
}

/** What is needed to verify a signature. Omits passkeys of disabled users. */
const StoredPasskey = Schema.Struct({
  id: PasskeyId,
  userId: UserId,
  epoch: Schema.Int,
  publicKey: Bytes,
  signCount: Schema.Int
})
export type StoredPasskey = typeof StoredPasskey.Type

const CredentialId = Schema.Struct({ credentialId: Bytes })
const Removed = Schema.Struct({ userId: UserId })

/** Passkeys, and the challenges that have already been answered. */
export class PasskeyStore extends Context.Service<PasskeyStore>()("gateway/users/PasskeyStore", {
  make: Effect.map(PgClient.PgClient, (sql) => ({ ...reads(sql), ...writes(sql) }))
}) {
  static readonly layer = Layer.effect(PasskeyStore, PasskeyStore.make)
}

function reads(sql: PgClient.PgClient) {
  return {
    find: (credentialId: Uint8Array) =>
      sql`
        SELECT p.id, p.user_id, u.session_epoch AS epoch, p.public_key, p.sign_count::float8 AS sign_count
        FROM passkeys p JOIN users u ON u.id = p.user_id
        WHERE p.credential_id = ${credentialId} AND u.disabled_at IS NULL`.pipe(
        rowsOf(StoredPasskey),
        Effect.map(Array.head),
        storeFailures
      ),
    /** Newest first. */
    list: (userId: UserId, page: PageRequest) =>
      sql`
        SELECT id, name, created_at, last_used_at FROM passkeys
        WHERE user_id = ${userId}
          AND (${Option.getOrNull(page.before)}::text IS NULL OR id < ${Option.getOrNull(page.before)}::text)
        ORDER BY id DESC LIMIT ${page.limit}`.pipe(rowsOf(PasskeyRow), storeFailures),
    credentialsOf: (userId: UserId) =>
      sql`SELECT credential_id FROM passkeys WHERE user_id = ${userId}`.pipe(
        rowsOf(CredentialId),
        Effect.map((rows) => rows.map(({ credentialId }) => credentialId)),
        storeFailures
      )
  }
}

function writes(sql: PgClient.PgClient) {
  return {
    /**
     * `None` if the user already has `passkeysMax`, or if the credential is already registered. Locks the user's row,
     * so that concurrent creates cannot exceed the maximum.
     */
    create: (p: NewPasskey, passkeysMax: number) =>
      Effect.gen(function* () {
        yield* sql`SELECT 1 FROM users WHERE id = ${p.userId} FOR UPDATE`
        return yield* sql`
          INSERT INTO passkeys (id, user_id, credential_id, public_key, sign_count, name, created_at)
          SELECT ${p.id}::text, ${p.userId}::uuid, ${p.credentialId}::bytea, ${p.publicKey}::bytea,
            ${p.signCount}::bigint, ${p.name}::text, ${toDate(p.now)}::timestamptz
          WHERE (SELECT count(*) FROM passkeys WHERE user_id = ${p.userId}) < ${passkeysMax}::int
            AND EXISTS (SELECT FROM users WHERE id = ${p.userId} AND disabled_at IS NULL)
          ON CONFLICT (credential_id) DO NOTHING
          RETURNING id, name, created_at, last_used_at`.pipe(
          rowsOf(PasskeyRow),
          Effect.map(Array.head)
        )
      }).pipe(
        audited(
          sql,
          Option.map(({ id }) => ({ resourceId: id }))
        ),
        sql.withTransaction,
        storeFailures
      ),
    /**
     * Updates the signature counter. False if another sign-in has updated it in the meantime or the passkey was
     * removed.
     */
    use: ({ id, signCount: before }: StoredPasskey, signCount: number, now: DateTime.Utc) =>
      sql`
        UPDATE passkeys SET sign_count = ${signCount}, last_used_at = ${toDate(now)}
        WHERE id = ${id} AND sign_count = ${before} RETURNING id`.pipe(
        Effect.map((rows) => rows.length > 0),
        storeFailures
      ),
    /**
     * Removes a passkey and ends the sessions that the user's passkeys opened, except `except`. False if the owner has
     * no such passkey. An `undefined` owner matches any.
     */
    remove: (id: PasskeyId, owner: UserId | undefined, except: SessionId | undefined) =>
      sql`
        WITH removed AS (
          DELETE FROM passkeys WHERE id = ${id} AND (${owner ?? null}::uuid IS NULL OR user_id = ${owner ?? null}::uuid)
          RETURNING user_id
        ), ended AS (
          DELETE FROM sessions s USING removed r
          WHERE s.user_id = r.user_id AND s.method = 'passkey' AND s.id IS DISTINCT FROM ${except ?? null}::text
        )
        SELECT user_id FROM removed`.pipe(
        rowsOf(Removed),
        audited(sql, ([row]) =>
          Option.map(Option.fromUndefinedOr(row), ({ userId }) => ({ resourceId: id, userId }))
        ),
        Effect.map((rows) => rows.length > 0),
        storeFailures
      ),
    /** Records that a challenge was answered. False if it had already been answered. */
    takeChallenge: (hash: Uint8Array, expiresAt: DateTime.Utc) =>
      sql`
        INSERT INTO passkey_challenges (hash, expires_at) VALUES (${hash}, ${toDate(expiresAt)})
        ON CONFLICT DO NOTHING RETURNING hash`.pipe(
        Effect.map((rows) => rows.length > 0),
        storeFailures
      )
  }
}
