import { PgClient } from "@effect/sql-pg"
import { Array, Context, Effect, Layer, Option, Schema } from "effect"
import type { DateTime } from "effect"
import { SqlError } from "effect/sql"
import { rowOf, rowsOf, Time, toDate } from "../db/Rows.ts"
import { storeFailures } from "../db/StoreFailures.ts"
import { ApiKeyId, UserId } from "../domain/Ids.ts"
import type { PageRequest } from "../domain/PageRequest.ts"
import type { StoreUnavailable } from "../domain/Problem.ts"
import { Scope } from "../domain/Scope.ts"

export class UserRow extends Schema.Class<UserRow>("UserRow")({
  id: UserId,
  email: Schema.String,
  name: Schema.NullOr(Schema.String),
  createdAt: Time,
  disabledAt: Schema.NullOr(Time)
}) {}

export class ApiKeyRow extends Schema.Class<ApiKeyRow>("ApiKeyRow")({
  id: ApiKeyId,
  userId: UserId,
  preview: Schema.String,
  name: Schema.String,
  scopes: Schema.Array(Scope),
  createdAt: Time,
  expiresAt: Schema.NullOr(Time),
  revokedAt: Schema.NullOr(Time),
  /** The user is disabled. */
  disabledAt: Schema.NullOr(Time),
  lastUsedAt: Schema.NullOr(Time)
}) {}

export interface NewUser {
  readonly id: UserId
  readonly email: string
  readonly name: string | null
  readonly passwordHash: string | null
  readonly now: DateTime.Utc
}

export interface NewApiKey {
  readonly id: ApiKeyId
  readonly userId: UserId
  readonly keyHash: Uint8Array
  readonly preview: string
  readonly name: string
  readonly scopes: ReadonlyArray<Scope>
  readonly expiresAt: DateTime.Utc | null
  readonly now: DateTime.Utc
}

/** What is absent stays. */
export interface UserChange {
  readonly email?: string
  readonly name?: string | null
  /** Null: none. */
  readonly passwordHash?: string | null
}

/** The outcome of a change to a user. */
export type UserUpdate =
  | { readonly _tag: "Updated"; readonly user: UserRow }
  | { readonly _tag: "Unknown" }
  | { readonly _tag: "EmailTaken" }

/** Users, the creation of their wallets, and API keys. */
export class UserStore extends Context.Service<
  UserStore,
  {
    /** The user and an empty wallet, in one transaction. `None`: the e-mail address is taken. */
    readonly create: (user: NewUser) => Effect.Effect<Option.Option<UserRow>, StoreUnavailable>
    readonly find: (id: UserId) => Effect.Effect<Option.Option<UserRow>, StoreUnavailable>
    readonly list: (page: PageRequest) => Effect.Effect<ReadonlyArray<UserRow>, StoreUnavailable>
    readonly update: (id: UserId, change: UserChange) => Effect.Effect<UserUpdate, StoreUnavailable>
    /**
     * Disables the user with all keys, or ends that. `wait`: a process has a reservation for one of the
     * keys and may still admit calls. `None`: no such user.
     */
    readonly setDisabled: (
      id: UserId,
      disabledAt: DateTime.Utc | null
    ) => Effect.Effect<
      Option.Option<{ readonly user: UserRow; readonly wait: boolean }>,
      StoreUnavailable
    >
    readonly createKey: (key: NewApiKey) => Effect.Effect<ApiKeyRow, StoreUnavailable>
    readonly findKeyByHash: (
      hash: Uint8Array
    ) => Effect.Effect<Option.Option<ApiKeyRow>, StoreUnavailable>
    readonly listKeys: (
      userId: UserId,
      page: PageRequest
    ) => Effect.Effect<ReadonlyArray<ApiKeyRow>, StoreUnavailable>
    /**
     * `None`: the user has no such key. Otherwise whether a process has a reservation for the key: it
     * read the key before and may still admit calls (ADR 0116). Revoking twice succeeds.
     */
    readonly revokeKey: (
      userId: UserId,
      id: ApiKeyId,
      now: DateTime.Utc
    ) => Effect.Effect<Option.Option<boolean>, StoreUnavailable>
    /** Writes when the key was last used, at most once a minute. */
    readonly touchKey: (id: ApiKeyId, now: DateTime.Utc) => Effect.Effect<void, StoreUnavailable>
  }
>()("gateway/users/UserStore") {
  static readonly layer = Layer.effect(
    UserStore,
    Effect.map(PgClient.PgClient, (sql) =>
      UserStore.of({ ...users(sql), ...keys(sql), setDisabled: setDisabled(sql) })
    )
  )
}

const emailTaken = (error: unknown): boolean =>
  SqlError.isSqlError(error) && error.reason._tag === "UniqueViolation"

function users(sql: PgClient.PgClient) {
  return {
    create: (user: NewUser) =>
      sql`
        WITH new_user AS (
          INSERT INTO users (id, email, name, password_hash, created_at)
          VALUES (${user.id}, ${user.email}, ${user.name}, ${user.passwordHash}, ${toDate(user.now)})
          RETURNING *
        ), new_wallet AS (
          INSERT INTO wallets (user_id) SELECT id FROM new_user
        )
        SELECT * FROM new_user`.pipe(
        rowsOf(UserRow),
        Effect.map(Array.head),
        Effect.catchIf(emailTaken, () => Effect.succeed(Option.none<UserRow>())),
        storeFailures
      ),
    find: (id: UserId) =>
      sql`SELECT * FROM users WHERE id = ${id}`.pipe(
        rowsOf(UserRow),
        Effect.map(Array.head),
        storeFailures
      ),
    list: (page: PageRequest) =>
      sql`
        SELECT * FROM users
        WHERE ${Option.getOrNull(page.before)}::uuid IS NULL OR id < ${Option.getOrNull(page.before)}::uuid
        ORDER BY id DESC LIMIT ${page.limit}`.pipe(rowsOf(UserRow), storeFailures),
    update: (id: UserId, change: UserChange) =>
      sql`
        UPDATE users SET
          email = coalesce(${change.email ?? null}::text, email),
          name = CASE WHEN ${change.name !== undefined}::boolean THEN ${change.name ?? null}::text ELSE name END,
          password_hash = CASE WHEN ${change.passwordHash !== undefined}::boolean
            THEN ${change.passwordHash ?? null}::text ELSE password_hash END,
          session_epoch = session_epoch + ${change.passwordHash === undefined ? 0 : 1}::int
        WHERE id = ${id} RETURNING *`.pipe(
        rowsOf(UserRow),
        Effect.map(([user]): UserUpdate =>
          user === undefined ? { _tag: "Unknown" } : { _tag: "Updated", user }
        ),
        Effect.catchIf(emailTaken, () => Effect.succeed<UserUpdate>({ _tag: "EmailTaken" })),
        storeFailures
      )
  }
}

function setDisabled(sql: PgClient.PgClient) {
  return (id: UserId, disabledAt: DateTime.Utc | null) => {
    const at = disabledAt === null ? null : toDate(disabledAt)
    return Effect.gen(function* () {
      const [user] = yield* sql`
          UPDATE users SET
            disabled_at = CASE WHEN ${at !== null}::boolean THEN coalesce(disabled_at, ${at}::timestamptz) END,
            session_epoch = session_epoch + ${at === null ? 0 : 1}::int
          WHERE id = ${id} RETURNING *`.pipe(rowsOf(UserRow))
      if (user === undefined) return Option.none()
      // A statement of its own sees the keys that waited for the lock of the user's row
      yield* sql`UPDATE api_keys SET disabled_at = ${at}::timestamptz WHERE user_id = ${id}`
      return Option.some(user)
    }).pipe(
      sql.withTransaction,
      Effect.flatMap(
        Option.match({
          onNone: () => Effect.succeedNone,
          onSome: (user) =>
            // After the commit, as for a revoked key
            Effect.map(
              sql`SELECT FROM holds WHERE kind = 'reservation' AND user_id = ${id} LIMIT 1`,
              (open) => Option.some({ user, wait: at !== null && open.length > 0 })
            )
        })
      ),
      storeFailures
    )
  }
}

function keys(sql: PgClient.PgClient) {
  return {
    createKey: (key: NewApiKey) =>
      sql`
        INSERT INTO api_keys (id, user_id, key_hash, preview, name, scopes, created_at, expires_at, disabled_at)
        SELECT ${key.id}, u.id, ${key.keyHash}::bytea, ${key.preview}, ${key.name}, ${key.scopes}::text[],
          ${toDate(key.now)}::timestamptz, ${key.expiresAt === null ? null : toDate(key.expiresAt)}::timestamptz,
          u.disabled_at
        FROM users u WHERE u.id = ${key.userId} FOR SHARE OF u
        RETURNING *`.pipe(rowOf(ApiKeyRow), storeFailures),
    findKeyByHash: (hash: Uint8Array) =>
      sql`SELECT * FROM api_keys WHERE key_hash = ${hash}`.pipe(
        rowsOf(ApiKeyRow),
        Effect.map(Array.head),
        storeFailures
      ),
    listKeys: (userId: UserId, page: PageRequest) =>
      sql`
        SELECT * FROM api_keys
        WHERE user_id = ${userId} AND revoked_at IS NULL
          AND (${Option.getOrNull(page.before)}::text IS NULL OR id < ${Option.getOrNull(page.before)}::text)
        ORDER BY id DESC LIMIT ${page.limit}`.pipe(rowsOf(ApiKeyRow), storeFailures),
    revokeKey: (userId: UserId, id: ApiKeyId, now: DateTime.Utc) =>
      sql`
        UPDATE api_keys SET revoked_at = coalesce(revoked_at, ${toDate(now)})
        WHERE id = ${id} AND user_id = ${userId} RETURNING id`.pipe(
        Effect.flatMap((rows) =>
          rows.length === 0
            ? Effect.succeedNone
            : // A separate statement, so that it sees every reservation opened before the revocation
              Effect.map(
                sql`SELECT FROM holds WHERE kind = 'reservation' AND api_key_id = ${id} LIMIT 1`,
                (open) => Option.some(open.length > 0)
              )
        ),
        storeFailures
      ),
    touchKey: (id: ApiKeyId, now: DateTime.Utc) =>
      sql`
        UPDATE api_keys SET last_used_at = ${toDate(now)}
        WHERE id = ${id} AND (last_used_at IS NULL OR last_used_at < ${toDate(now)}::timestamptz - interval '1 minute')`.pipe(
        Effect.asVoid,
        storeFailures
      )
  }
}
