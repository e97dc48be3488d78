import { PgClient } from "@effect/sql-pg"
import { Array, Context, Effect, Layer, Option, Schema } from "effect"
import type { DateTime } from "effect"
import { SqlError } from "effect/sql"
import { audited } from "../db/Audited.ts"
import { rowsOf, Time, toDate } from "../db/Rows.ts"
import { storeFailures } from "../db/StoreFailures.ts"
import { UserId } from "../domain/Ids.ts"
import type { ApiKeyId } from "../domain/Ids.ts"
import type { PageRequest } from "../domain/PageRequest.ts"
import type { StoreUnavailable } from "../domain/Problem.ts"
import { apiKeyChanges, apiKeys } from "./ApiKeyStore.ts"
import type { ApiKeyRow, KeyChange, KeyDetails, NewApiKey } from "./ApiKeyStore.ts"

export class UserRow extends Schema.Class<UserRow>("UserRow")({
  id: UserId,
  email: Schema.String,
  name: Schema.NullOr(Schema.String),
  createdAt: Time,
  disabledAt: Schema.NullOr(Time)
}) {}

export interface NewUser {
  readonly id: UserId
  readonly email: string
  readonly name: string | null
  readonly passwordHash: string | null
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
    /** Whether there is a row, that of a deleted user too. */
    readonly known: Effect.Effect<boolean, StoreUnavailable>
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
      page: PageRequest,
      now: DateTime.Utc
    ) => Effect.Effect<ReadonlyArray<KeyDetails>, StoreUnavailable>
    /** A key that is not revoked, of this user or of any. */
    readonly findKey: (
      userId: Option.Option<UserId>,
      id: ApiKeyId,
      now: DateTime.Utc
    ) => Effect.Effect<Option.Option<KeyDetails>, StoreUnavailable>
    /** `None`: the user has no such key. Otherwise as `revokeKey`. ADR 0160. */
    readonly updateKey: (
      userId: UserId,
      id: ApiKeyId,
      change: KeyChange,
      now: DateTime.Utc
    ) => Effect.Effect<Option.Option<boolean>, StoreUnavailable>
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
      UserStore.of({
        ...users(sql),
        ...apiKeys(sql),
        ...apiKeyChanges(sql),
        setDisabled: setDisabled(sql)
      })
    )
  )
}

const emailTaken = (error: unknown): boolean =>
  SqlError.isSqlError(error) && error.reason._tag === "UniqueViolation"

const aboutUser = ({ id }: UserRow) => ({ userId: id, resourceId: id })

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
        audited(sql, Option.map(aboutUser)),
        Effect.catchIf(emailTaken, () => Effect.succeed(Option.none<UserRow>())),
        storeFailures
      ),
    find: (id: UserId) =>
      sql`SELECT * FROM users WHERE id = ${id} AND deleted_at IS NULL`.pipe(
        rowsOf(UserRow),
        Effect.map(Array.head),
        storeFailures
      ),
    list: (page: PageRequest) =>
      sql`
        SELECT * FROM users
        WHERE deleted_at IS NULL
          AND (${Option.getOrNull(page.before)}::uuid IS NULL OR id < ${Option.getOrNull(page.before)}::uuid)
        ORDER BY id DESC LIMIT ${page.limit}`.pipe(rowsOf(UserRow), storeFailures),
    known: sql`SELECT FROM users LIMIT 1`.pipe(
      Effect.map((rows) => rows.length > 0),
      storeFailures
    ),
    update: (id: UserId, change: UserChange) =>
      sql`
        UPDATE users SET
          email = coalesce(${change.email ?? null}::text, email),
          name = CASE WHEN ${change.name !== undefined}::boolean THEN ${change.name ?? null}::text ELSE name END,
          password_hash = CASE WHEN ${change.passwordHash !== undefined}::boolean
            THEN ${change.passwordHash ?? null}::text ELSE password_hash END,
          session_epoch = session_epoch + ${change.passwordHash === undefined ? 0 : 1}::int
        WHERE id = ${id} AND deleted_at IS NULL RETURNING *`.pipe(
        rowsOf(UserRow),
        Effect.map(([user]): UserUpdate =>
          user === undefined ? { _tag: "Unknown" } : { _tag: "Updated", user }
        ),
        audited(sql, (update) =>
          update._tag === "Updated" ? Option.some(aboutUser(update.user)) : Option.none()
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
          WHERE id = ${id} AND deleted_at IS NULL RETURNING *`.pipe(rowsOf(UserRow))
      if (user === undefined) return Option.none()
      // A statement of its own sees the keys that waited for the lock of the user's row
      yield* sql`UPDATE api_keys SET disabled_at = ${at}::timestamptz WHERE user_id = ${id}`
      return Option.some(user)
    }).pipe(
      sql.withTransaction,
      audited(sql, Option.map(aboutUser)),
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
