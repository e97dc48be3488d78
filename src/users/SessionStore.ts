import { PgClient } from "@effect/sql-pg"
import { Array, Context, Effect, Layer, Option, Schema } from "effect"
import type { DateTime } from "effect"
import { audited } from "../db/Audited.ts"
import { rowsOf, Time, toDate } from "../db/Rows.ts"
import { storeFailures } from "../db/StoreFailures.ts"
import { ApiKeyId, SessionId, UserId } from "../domain/Ids.ts"
import type { PageRequest } from "../domain/PageRequest.ts"
import { SignInMethod } from "../domain/Session.ts"
import { consoleKeys, exchangedKey } from "./ApiKeyStore.ts"
import { hasAddress } from "./UserListStore.ts"

/** A session that has not ended. */
export class SessionRow extends Schema.Class<SessionRow>("SessionRow")({
  id: SessionId,
  /** Null for the operator. */
  userId: Schema.NullOr(UserId),
  email: Schema.NullOr(Schema.String),
  name: Schema.NullOr(Schema.String),
  method: SignInMethod,
  apiKeyId: Schema.NullOr(ApiKeyId),
  /** The exchanged key's limits. `isPrevious`: its secret was replaced and is only valid for its grace period. */
  isLimited: Schema.Boolean,
  isPrevious: Schema.Boolean,
  address: Schema.NullOr(Schema.String),
  createdAt: Time,
  lastSeenAt: Time,
  expiresAt: Time
}) {}

/** A user as the owner of a session or a link. Both end when the user's epoch changes. */
export interface UserOwner {
  readonly _tag: "User"
  readonly userId: UserId
  readonly epoch: number
}

/** The owner of a session, with the value whose change ends the session. */
export type Owner = UserOwner | { readonly _tag: "Operator"; readonly mac: string }

/** The exchanged key and its secret. The session ends when either does. */
export interface SessionKey {
  readonly id: ApiKeyId
  readonly rotation: number
}

export interface NewSession {
  readonly id: SessionId
  readonly tokenHash: Uint8Array
  readonly owner: Owner
  readonly method: SignInMethod
  readonly key: SessionKey | null
  readonly address: string | null
  readonly now: DateTime.Utc
  readonly expiresAt: DateTime.Utc
}

/** What determines whether a session has ended. */
export interface Standing {
  readonly now: DateTime.Utc
  /** Sessions last used before this time have ended. */
  readonly idleSince: DateTime.Utc
  readonly operatorMac: string
}

/** The columns of a user that sign-in needs. */
const SignInUser = Schema.Struct({
  id: UserId,
  passwordHash: Schema.NullOr(Schema.String),
  epoch: Schema.Int,
  oidcSubject: Schema.NullOr(Schema.String)
})
export type SignInUser = typeof SignInUser.Type

const Removed = Schema.Struct({ userId: Schema.NullOr(UserId) })

const LinkRow = Schema.Struct({ userId: UserId, epoch: Schema.Int })

/** Sessions and sign-in links. */
export class SessionStore extends Context.Service<SessionStore>()("gateway/users/SessionStore", {
  make: Effect.map(PgClient.PgClient, (sql) => ({
    ...signIn(sql),
    ...sessions(sql),
    ...sessionChanges(sql),
    ...links(sql),
    ...consoleKeys(sql)
  }))
}) {
  static readonly layer = Layer.effect(SessionStore, SessionStore.make)
}

const head = <E, R>(rows: Effect.Effect<ReadonlyArray<unknown>, E, R>) =>
  rows.pipe(rowsOf(SignInUser), Effect.map(Array.head))

function signIn(sql: PgClient.PgClient) {
  const columns = sql.literal("id, password_hash, session_epoch AS epoch, oidc_subject")
  return {
    /** Finds a user who is not disabled. Addresses are compared ignoring the case of A to Z. */
    userByEmail: (email: string) =>
      sql`SELECT ${columns} FROM users WHERE ${hasAddress(sql, email)} AND disabled_at IS NULL`.pipe(
        head,
        storeFailures
      ),
    userById: (id: UserId) =>
      sql`SELECT ${columns} FROM users WHERE id = ${id} AND disabled_at IS NULL`.pipe(
        head,
        storeFailures
      ),
    /** Finds a user by `oidc_subject`; if there is none, by an address with which no other subject has signed in. */
    userBySubject: (subject: string, email: string) =>
      Effect.gen(function* () {
        const [known] = yield* sql`SELECT id FROM users WHERE oidc_subject = ${subject}`
        if (known === undefined) {
          yield* sql`
            UPDATE users SET oidc_subject = ${subject}
            WHERE ${hasAddress(sql, email)} AND oidc_subject IS NULL AND disabled_at IS NULL`
        }
        return yield* head(
          sql`SELECT ${columns} FROM users WHERE oidc_subject = ${subject} AND disabled_at IS NULL`
        )
      }).pipe(sql.withTransaction, storeFailures),
    /** Replaces a password hash by one with the current parameters, unless it has changed in the meantime. */
    rehash: (id: UserId, from: string, to: string) =>
      sql`UPDATE users SET password_hash = ${to} WHERE id = ${id} AND password_hash = ${from}`.pipe(
        Effect.asVoid,
        storeFailures
      )
  }
}

function sessions(sql: PgClient.PgClient) {
  const standing = ({ idleSince, now, operatorMac }: Standing) => sql`
    s.expires_at > ${toDate(now)} AND s.last_seen_at > ${toDate(idleSince)}
    AND (s.user_id IS NULL AND s.operator_mac = ${operatorMac}
      OR u.disabled_at IS NULL AND u.session_epoch = s.epoch)
    AND (s.api_key_id IS NULL
      OR k.revoked_at IS NULL AND (k.expires_at IS NULL OR k.expires_at > ${toDate(now)})
        AND 'manage' = ANY (k.scopes)
        AND (k.rotations = coalesce(s.key_rotations, 0)
          OR k.rotations = coalesce(s.key_rotations, 0) + 1 AND k.previous_key_until > ${toDate(now)}))`
  const joined = sql.literal(
    "sessions s LEFT JOIN users u ON u.id = s.user_id LEFT JOIN api_keys k ON k.id = s.api_key_id"
  )
  // An exchanged key or secret may end before the session would
  const columns = sql.literal(`s.*, least(s.expires_at, k.expires_at,
    CASE WHEN k.rotations > coalesce(s.key_rotations, 0) THEN k.previous_key_until END) AS expires_at,
    ${exchangedKey}, u.email, u.name`)
  return {
    find: (tokenHash: Uint8Array, at: Standing) =>
      sql`SELECT ${columns} FROM ${joined} WHERE s.token_hash = ${tokenHash} AND ${standing(at)}`.pipe(
        rowsOf(SessionRow),
        Effect.map(Array.head),
        storeFailures
      ),
    /** The sessions of a user or of the operator. */
    list: (userId: UserId | null, page: PageRequest, at: Standing) =>
      sql`
        SELECT ${columns} FROM ${joined}
        WHERE s.user_id IS NOT DISTINCT FROM ${userId}::uuid AND ${standing(at)}
          AND (${Option.getOrNull(page.before)}::text IS NULL OR s.id < ${Option.getOrNull(page.before)}::text)
        ORDER BY s.id DESC LIMIT ${page.limit}`.pipe(rowsOf(SessionRow), storeFailures)
  }
}

function sessionChanges(sql: PgClient.PgClient) {
  return {
    /** Creates a session and removes all but the newest `max` sessions of its owner. */
    create: (s: NewSession, max: number) => {
      const userId = s.owner._tag === "User" ? s.owner.userId : null
      return sql`
        WITH older AS (
          DELETE FROM sessions WHERE id = ANY (ARRAY(
            SELECT id FROM sessions WHERE user_id IS NOT DISTINCT FROM ${userId}::uuid
            ORDER BY id DESC OFFSET ${max - 1}
          ))
        )
        INSERT INTO sessions (id, token_hash, user_id, method, api_key_id, key_rotations, epoch, operator_mac, address,
          created_at, last_seen_at, expires_at)
        VALUES (${s.id}, ${s.tokenHash}, ${userId}, ${s.method}, ${s.key?.id ?? null}, ${s.key?.rotation ?? null},
          ${s.owner._tag === "User" ? s.owner.epoch : null},
          ${s.owner._tag === "Operator" ? s.owner.mac : null}, ${s.address},
          ${toDate(s.now)}, ${toDate(s.now)}, ${toDate(s.expiresAt)})`.pipe(
        audited(sql, () =>
          Option.some({
            actor: { type: "session", id: s.id, userId },
            resourceId: s.id,
            ...(userId === null ? {} : { userId })
          })
        ),
        Effect.asVoid,
        storeFailures
      )
    },
    /**
     * Sets the user's password, ends all other sessions and gives this session a new token. False if the password has
     * changed in the meantime or the user is disabled.
     */
    changePassword: (
      { id, userId }: SessionRow,
      {
        from,
        to,
        tokenHash
      }: { readonly from: string | null; readonly to: string; readonly tokenHash: Uint8Array }
    ) =>
      sql`
        WITH changed AS (
          UPDATE users SET password_hash = ${to}, session_epoch = session_epoch + 1
          WHERE id = ${userId} AND password_hash IS NOT DISTINCT FROM ${from}::text AND disabled_at IS NULL
          RETURNING id, session_epoch
        ), kept AS (
          UPDATE sessions s SET token_hash = ${tokenHash}, epoch = c.session_epoch
          FROM changed c WHERE s.id = ${id} AND s.user_id = c.id
        )
        SELECT id AS user_id FROM changed`.pipe(
        rowsOf(Removed),
        audited(sql, ([row]) =>
          Option.map(Option.fromUndefinedOr(row), () => ({ resourceId: id }))
        ),
        Effect.map((rows) => rows.length > 0),
        storeFailures
      ),
    end: (tokenHash: Uint8Array) =>
      sql`DELETE FROM sessions WHERE token_hash = ${tokenHash}`.pipe(Effect.asVoid, storeFailures),
    touch: (id: SessionId, now: DateTime.Utc) =>
      sql`
        UPDATE sessions SET last_seen_at = ${toDate(now)}
        WHERE id = ${id} AND last_seen_at < ${toDate(now)}`.pipe(Effect.asVoid, storeFailures),
    /** False if the owner has no such session. An `undefined` owner matches any. */
    remove: (id: SessionId, owner: UserId | null | undefined) =>
      sql`
        DELETE FROM sessions WHERE id = ${id}
          AND (${owner === undefined}::boolean OR user_id IS NOT DISTINCT FROM ${owner ?? null}::uuid)
        RETURNING id, user_id`.pipe(
        rowsOf(Removed),
        audited(sql, ([row]) =>
          Option.map(Option.fromUndefinedOr(row), ({ userId }) => ({
            resourceId: id,
            ...(userId === null ? {} : { userId })
          }))
        ),
        Effect.map((rows) => rows.length > 0),
        storeFailures
      )
  }
}

function links(sql: PgClient.PgClient) {
  return {
    createLink: (tokenHash: Uint8Array, { epoch, userId }: UserOwner, expiresAt: DateTime.Utc) =>
      sql`
        INSERT INTO sign_in_links (token_hash, user_id, epoch, expires_at)
        VALUES (${tokenHash}, ${userId}, ${epoch}, ${toDate(expiresAt)})`.pipe(
        audited(sql, () => Option.some({ userId })),
        Effect.asVoid,
        storeFailures
      ),
    /** Consumes a link and returns its owner. */
    takeLink: (tokenHash: Uint8Array, now: DateTime.Utc) =>
      sql`
        WITH taken AS (DELETE FROM sign_in_links WHERE token_hash = ${tokenHash} RETURNING *)
        SELECT t.user_id, t.epoch FROM taken t JOIN users u ON u.id = t.user_id
        WHERE t.expires_at > ${toDate(now)} AND u.disabled_at IS NULL AND u.session_epoch = t.epoch`.pipe(
        rowsOf(LinkRow),
        Effect.map(([row]) => (row === undefined ? Option.none() : Option.some(userOwner(row)))),
        storeFailures
      ),
    deleteExpired: ({ idleSince, now }: Standing) =>
      Effect.gen(function* () {
        yield* sql`DELETE FROM sessions WHERE expires_at <= ${toDate(now)} OR last_seen_at <= ${toDate(idleSince)}`
        yield* sql`DELETE FROM sign_in_links WHERE expires_at <= ${toDate(now)}`
        yield* sql`DELETE FROM passkey_challenges WHERE expires_at <= ${toDate(now)}`
      }).pipe(storeFailures)
  }
}

const userOwner = ({ epoch, userId }: typeof LinkRow.Type): UserOwner => ({
  _tag: "User",
  userId,
  epoch
})
