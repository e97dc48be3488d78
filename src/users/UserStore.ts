import { PgClient } from "@effect/sql-pg"
import { Array, Context, Effect, Layer, Option, String } from "effect"
import type { DateTime } from "effect"
import { SqlError } from "effect/sql"
import { audited } from "../db/Audited.ts"
import type { ScannedPage } from "../db/ListScan.ts"
import { rowsOf, toDate } from "../db/Rows.ts"
import { storeFailures } from "../db/StoreFailures.ts"
import type { Credits } from "../domain/Credits.ts"
import type { ApiKeyId, UserId } from "../domain/Ids.ts"
import type { PageRequest } from "../domain/PageRequest.ts"
import type { StoreUnavailable } from "../domain/Problem.ts"
import { apiKeyChanges, apiKeys } from "./ApiKeyStore.ts"
import { listUsers, ownersIn, UserRow } from "./UserListStore.ts"
import type { ListedUser, UserListing } from "./UserListStore.ts"

export { UserRow } from "./UserListStore.ts"
import type {
  ApiKeyRow,
  FoundKey,
  KeyChange,
  KeyDetails,
  KeyRotation,
  KeyUpdate,
  NewApiKey
} from "./ApiKeyStore.ts"

export interface NewUser {
  readonly id: UserId
  readonly email: string
  readonly name: string | null
  readonly passwordHash: string | null
  readonly now: DateTime.Utc
}

/** Absent fields stay unchanged. */
export interface UserChange {
  readonly email?: string | undefined
  readonly name?: string | null | undefined
  /** Null removes the password. A change ends all sessions of the user. */
  readonly passwordHash?: string | null | undefined
  /** True refuses the user's keys and ends the sessions; false accepts the keys again. Running tasks continue. */
  readonly disabled?: boolean | undefined
  /** `balance.low` is sent when the balance falls below this. */
  readonly triggerThreshold?: Credits | undefined
  /** Null: the configured limits apply. */
  readonly rateLimitPerMinute?: number | null | undefined
  readonly concurrentTasks?: number | null | undefined
}

/** The outcome of a change to a user. */
export type UserUpdate =
  | {
      readonly _tag: "Updated"
      readonly user: UserRow
      /**
       * Whether a process has a reservation for one of the user's keys and may still admit calls under the previous
       * state.
       */
      readonly wait: boolean
    }
  | { readonly _tag: "Unknown" }
  | { readonly _tag: "EmailTaken" }

/** Users and their API keys; also creates their wallets. */
export class UserStore extends Context.Service<
  UserStore,
  {
    /** Creates the user and an empty wallet in one transaction. `None` if the e-mail address is taken. */
    readonly create: (user: NewUser) => Effect.Effect<Option.Option<UserRow>, StoreUnavailable>
    readonly find: (id: UserId) => Effect.Effect<Option.Option<UserRow>, StoreUnavailable>
    readonly list: (
      listing: UserListing
    ) => Effect.Effect<ScannedPage<ListedUser>, StoreUnavailable>
    /** Addresses by user id; null if the user was deleted. */
    readonly owners: (
      ids: ReadonlyArray<UserId>
    ) => Effect.Effect<ReadonlyMap<UserId, string | null>, StoreUnavailable>
    /** Whether the store has any user, including deleted ones. */
    readonly known: Effect.Effect<boolean, StoreUnavailable>
    /** Changes the user and writes the audit entry in one transaction. ADR 0030. */
    readonly update: (
      id: UserId,
      change: UserChange,
      now: DateTime.Utc
    ) => Effect.Effect<UserUpdate, StoreUnavailable>
    readonly createKey: (key: NewApiKey) => Effect.Effect<ApiKeyRow, StoreUnavailable>
    readonly findKeyByHash: (
      hash: Uint8Array
    ) => Effect.Effect<Option.Option<FoundKey>, StoreUnavailable>
    readonly listKeys: (
      userId: UserId,
      page: PageRequest,
      now: DateTime.Utc
    ) => Effect.Effect<ReadonlyArray<KeyDetails>, StoreUnavailable>
    /** A key that is not revoked, of this user or, for the operator, of any user. */
    readonly findKey: (
      userId: Option.Option<UserId>,
      id: ApiKeyId,
      now: DateTime.Utc
    ) => Effect.Effect<Option.Option<KeyDetails>, StoreUnavailable>
    /** `None` if the user has no such key. ADR 0160, 0190. */
    readonly updateKey: (
      userId: UserId,
      id: ApiKeyId,
      change: KeyChange,
      now: DateTime.Utc
    ) => Effect.Effect<Option.Option<KeyUpdate>, StoreUnavailable>
    /**
     * `None`: the user has no such key. Otherwise whether a process has a reservation for the key: it read the key
     * before and may still admit calls (ADR 0116). Revoking a revoked key succeeds.
     */
    readonly revokeKey: (
      userId: UserId,
      id: ApiKeyId,
      now: DateTime.Utc
    ) => Effect.Effect<Option.Option<boolean>, StoreUnavailable>
    /**
     * Replaces the secret; the old one stays valid for its grace period. Otherwise like `revokeKey`. Console keys are
     * never rotated. ADR 0190.
     */
    readonly rotateKey: (
      userId: UserId,
      id: ApiKeyId,
      rotation: KeyRotation
    ) => Effect.Effect<Option.Option<boolean>, StoreUnavailable>
    /** Records when the key was last used, at most once a minute. */
    readonly touchKey: (id: ApiKeyId, now: DateTime.Utc) => Effect.Effect<void, StoreUnavailable>
  }
>()("gateway/users/UserStore") {
  static readonly layer = Layer.effect(
    UserStore,
    Effect.map(PgClient.PgClient, (sql) =>
      UserStore.of({
        ...users(sql),
        ...apiKeys(sql),
        ...apiKeyChanges(sql)
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
          INSERT INTO wallets (user_id) SELECT id FROM new_user RETURNING trigger_threshold
        )
        SELECT * FROM new_user, new_wallet`.pipe(
        rowsOf(UserRow),
        Effect.map(Array.head),
        audited(sql, Option.map(aboutUser)),
        Effect.catchIf(emailTaken, () => Effect.succeed(Option.none<UserRow>())),
        storeFailures
      ),
    find: (id: UserId) =>
      sql`
        SELECT u.*, w.trigger_threshold FROM users u JOIN wallets w ON w.user_id = u.id
        WHERE u.id = ${id} AND u.deleted_at IS NULL`.pipe(
        rowsOf(UserRow),
        Effect.map(Array.head),
        storeFailures
      ),
    list: listUsers(sql),
    owners: ownersIn(sql),
    known: sql`SELECT FROM users LIMIT 1`.pipe(
      Effect.map((rows) => rows.length > 0),
      storeFailures
    ),
    update: update(sql)
  }
}

const updatedRow = (user: UserRow | undefined): UserUpdate =>
  user === undefined ? { _tag: "Unknown" } : { _tag: "Updated", user, wait: false }

/** One transaction. After its commit the reservations are read, as when a key is revoked. */
function update(sql: PgClient.PgClient) {
  return (id: UserId, change: UserChange, now: DateTime.Utc) => {
    const fields = Object.entries(change)
      .filter(([, value]) => value !== undefined)
      .map(([field]) => (field === "passwordHash" ? "password" : String.camelToSnake(field)))
    const refusesMore = change.disabled === true || change.rateLimitPerMinute !== undefined
    const reserved = refusesMore
      ? Effect.map(
          sql`SELECT FROM holds WHERE kind = 'reservation' AND user_id = ${id} LIMIT 1`,
          (open) => open.length > 0
        )
      : Effect.succeed(false)
    return sql`
      SELECT * FROM user_update(
        ${id}, ${fields}::text[], ${change.email ?? null}::text, ${change.name ?? null}::text,
        ${change.passwordHash ?? null}::text, ${change.disabled ?? null}::boolean,
        ${change.triggerThreshold ?? null}::bigint, ${change.rateLimitPerMinute ?? null}::int,
        ${change.concurrentTasks ?? null}::int, ${toDate(now)})`.pipe(
      rowsOf(UserRow),
      Effect.map(([user]) => updatedRow(user)),
      audited(sql, (updated) =>
        updated._tag === "Updated" ? Option.some(aboutUser(updated.user)) : Option.none()
      ),
      Effect.flatMap((updated) =>
        Effect.map(reserved, (wait): UserUpdate =>
          updated._tag === "Updated" ? { ...updated, wait } : updated
        )
      ),
      Effect.catchIf(emailTaken, () => Effect.succeed<UserUpdate>({ _tag: "EmailTaken" })),
      storeFailures
    )
  }
}
