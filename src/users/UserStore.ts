import { PgClient } from "@effect/sql-pg"
import { Array, Context, Effect, Layer, Option, String } from "effect"
import type { DateTime } from "effect"
import { SqlError } from "effect/sql"
import { audited } from "../db/Audited.ts"
import { rowsOf, toDate } from "../db/Rows.ts"
import { storeFailures } from "../db/StoreFailures.ts"
import type { Credits } from "../domain/Credits.ts"
import type { UserId } from "../domain/Ids.ts"
import { apiKeyChanges, apiKeys } from "./ApiKeyStore.ts"
import { listUsers, ownersIn, UserRow } from "./UserListStore.ts"

export { UserRow } from "./UserListStore.ts"

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
export class UserStore extends Context.Service<UserStore>()("gateway/users/UserStore", {
  make: Effect.map(PgClient.PgClient, (sql) => ({
    ...users(sql),
    ...apiKeys(sql),
    ...apiKeyChanges(sql)
  }))
}) {
  static readonly layer = Layer.effect(UserStore, UserStore.make)
}

const emailTaken = (error: unknown): boolean =>
  SqlError.isSqlError(error) && error.reason._tag === "UniqueViolation"

const aboutUser = ({ id }: UserRow) => ({ userId: id, resourceId: id })

function users(sql: PgClient.PgClient) {
  return {
    /** Creates the user and an empty wallet in one transaction. `None` if the e-mail address is taken. */
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
    /** Addresses by user id; null if the user was deleted. */
    owners: ownersIn(sql),
    /** Whether the store has any user, including deleted ones. */
    known: sql`SELECT FROM users LIMIT 1`.pipe(
      Effect.map((rows) => rows.length > 0),
      storeFailures
    ),
    /** Changes the user and writes the audit entry in one transaction. ADR 0030. */
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
