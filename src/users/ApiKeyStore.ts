import type { PgClient } from "@effect/sql-pg"
import { Array, Effect, Option, Schema, String } from "effect"
import type { DateTime } from "effect"
import { audited, named } from "../db/Audited.ts"
import { Bytes, Micro, rowOf, rowsOf, Time, toDate } from "../db/Rows.ts"
import { storeFailures } from "../db/StoreFailures.ts"
import type { Credits } from "../domain/Credits.ts"
import { ApiKeyId, UserId } from "../domain/Ids.ts"
import type { PageRequest } from "../domain/PageRequest.ts"
import { Scope } from "../domain/Scope.ts"
import { SpendReset } from "../domain/SpendLimit.ts"

export class ApiKeyRow extends Schema.Class<ApiKeyRow>("ApiKeyRow")({
  id: ApiKeyId,
  userId: UserId,
  preview: Schema.String,
  name: Schema.String,
  scopes: Schema.Array(Scope),
  createdAt: Time,
  expiresAt: Schema.NullOr(Time),
  revokedAt: Schema.NullOr(Time),
  /** When the user was disabled; null if enabled. */
  disabledAt: Schema.NullOr(Time),
  lastUsedAt: Schema.NullOr(Time)
}) {}

/**
 * SQL: whether the key row `k` has a limit; false if there is no key. docs/reference/keys-and-limits.md#limits-of-a-key
 */
const isLimited = `num_nonnulls(k.spend_limit, k.allowed_models, k.rate_limit_per_minute, k.concurrent_tasks,
  k.expires_at) > 0`

/** SQL: columns of the key row `k` that was exchanged for the session row `s`, if any. */
export const exchangedKey = `${isLimited} AS is_limited,
  coalesce(k.rotations > coalesce(s.key_rotations, 0), false) AS is_previous`

/** A key found by its secret. */
const FoundKey = Schema.Struct({
  ...ApiKeyRow.fields,
  rotations: Schema.Int,
  isLimited: Schema.Boolean,
  /** Whether the secret is the one from before the latest rotation. */
  isPrevious: Schema.Boolean,
  previousKeyUntil: Schema.NullOr(Time)
})
export type FoundKey = typeof FoundKey.Type

/** A key with its limits and what it has spent in the current period. */
export class KeyDetails extends Schema.Class<KeyDetails>("KeyDetails")({
  ...ApiKeyRow.fields,
  spendLimit: Schema.NullOr(Micro),
  spendReset: Schema.NullOr(SpendReset),
  /** In the current period. */
  spent: Micro,
  held: Micro,
  allowedModels: Schema.NullOr(Schema.Array(Schema.String)),
  rateLimitPerMinute: Schema.NullOr(Schema.Int),
  concurrentTasks: Schema.NullOr(Schema.Int),
  isConsole: Schema.Boolean,
  /** How long the secret from before the latest rotation stays valid. */
  previousKeyUntil: Schema.NullOr(Time)
}) {}

/** Changes to a key's limits: an absent field leaves a limit unchanged, `null` removes it. */
export interface KeyLimits {
  readonly spendLimit?: Credits | null
  /** When the spend limit resets. Absent: unchanged, or never for a new limit. */
  readonly reset?: SpendReset
  readonly allowedModels?: ReadonlyArray<string> | null
  readonly rateLimitPerMinute?: number | null
  readonly concurrentTasks?: number | null
}

export interface KeyChange extends KeyLimits {
  readonly name?: string
  readonly expiresAt?: DateTime.Utc | null
}

/**
 * The result of a change. `reserved`: a process has a reservation for the key, as in `revokeKey`. `null`: `reset` was
 * given without a spend limit, and nothing was changed.
 */
export interface KeyUpdate {
  readonly reserved: boolean | null
}

/** The new secret of a key. */
export interface KeyRotation {
  readonly keyHash: Uint8Array
  readonly preview: string
  /** How long the old secret stays valid; `null` if it no longer is. */
  readonly oldUntil: DateTime.Utc | null
}

export interface NewApiKey {
  readonly id: ApiKeyId
  readonly userId: UserId
  readonly keyHash: Uint8Array
  readonly preview: string
  readonly name: string
  readonly scopes: ReadonlyArray<Scope>
  readonly expiresAt: DateTime.Utc | null
  readonly limits?: KeyLimits
  readonly now: DateTime.Utc
}

/** An amount counted in a past period counts as zero in the current one. */
const details = (sql: PgClient.PgClient, now: DateTime.Utc) => sql`
  SELECT k.*, coalesce(b.spent, 0)::bigint AS spent, coalesce(b.held, 0)::bigint AS held
  FROM api_keys k LEFT JOIN key_budgets b ON b.api_key_id = k.id AND k.spend_limit IS NOT NULL
    AND (k.spend_reset = 'never' OR budget_period_end(k.spend_reset, b.since) > ${toDate(now)})`

export function apiKeys(sql: PgClient.PgClient) {
  return {
    createKey: (key: NewApiKey) =>
      insertLimited(sql, key).pipe(
        audited(sql, (row) => Option.some({ userId: row.userId, resourceId: row.id })),
        storeFailures
      ),
    findKeyByHash: (hash: Uint8Array) =>
      sql`
        SELECT k.*, k.key_hash <> ${hash} AS is_previous, ${sql.literal(isLimited)} AS is_limited FROM api_keys k
        WHERE k.key_hash = ${hash} OR k.previous_key_hash = ${hash}`.pipe(
        rowsOf(FoundKey),
        Effect.map(Array.head),
        storeFailures
      ),
    listKeys: (userId: UserId, page: PageRequest, now: DateTime.Utc) =>
      sql`
        ${details(sql, now)}
        WHERE k.user_id = ${userId} AND k.revoked_at IS NULL
          AND (${Option.getOrNull(page.before)}::text IS NULL OR k.id < ${Option.getOrNull(page.before)}::text)
        ORDER BY k.id DESC LIMIT ${page.limit}`.pipe(rowsOf(KeyDetails), storeFailures),
    /** A key that is not revoked, of this user or, for the operator, of any user. */
    findKey: (userId: Option.Option<UserId>, id: ApiKeyId, now: DateTime.Utc) =>
      sql`
        ${details(sql, now)}
        WHERE k.id = ${id} AND k.revoked_at IS NULL
          AND (${Option.getOrNull(userId)}::uuid IS NULL OR k.user_id = ${Option.getOrNull(userId)}::uuid)`.pipe(
        rowsOf(KeyDetails),
        Effect.map(Array.head),
        storeFailures
      )
  }
}

const insertKey = (sql: PgClient.PgClient, key: NewApiKey) =>
  sql`
    INSERT INTO api_keys (id, user_id, key_hash, preview, name, scopes, created_at, expires_at, disabled_at,
      user_rate_limit_per_minute)
    SELECT ${key.id}, u.id, ${key.keyHash}::bytea, ${key.preview}, ${key.name}, ${key.scopes}::text[],
      ${toDate(key.now)}::timestamptz, ${key.expiresAt === null ? null : toDate(key.expiresAt)}::timestamptz,
      u.disabled_at, u.rate_limit_per_minute
    FROM users u WHERE u.id = ${key.userId} FOR SHARE OF u
    RETURNING *`.pipe(rowOf(ApiKeyRow))

/** Inserts the key and its limits in one transaction, so that nobody can use the key without them. */
const insertLimited = (sql: PgClient.PgClient, key: NewApiKey) => {
  const { id, limits = {}, now, userId } = key
  if (Object.keys(limits).length === 0) return insertKey(sql, key)
  return sql.withTransaction(
    Effect.gen(function* () {
      // Lock the wallet first, as everywhere
      yield* sql`SELECT FROM wallet_lock(${userId})`
      const row = yield* insertKey(sql, key)
      yield* updateKey(sql, userId, id, limits, now)
      return row
    })
  )
}

const updateKey = (
  sql: PgClient.PgClient,
  userId: UserId,
  id: ApiKeyId,
  change: KeyChange,
  now: DateTime.Utc
) => {
  const { allowedModels, concurrentTasks, expiresAt, name, rateLimitPerMinute } = change
  const fields = Object.entries(change)
    .filter(([, value]) => value !== undefined)
    .map(([field]) => String.camelToSnake(field))
  return sql`
    SELECT reserved FROM api_key_update(
      ${userId}, ${id}, ${fields}::text[], ${name ?? null}::text, ${change.spendLimit ?? null}::bigint,
      ${change.reset ?? null}::text, ${allowedModels ?? null}::text[],
      ${rateLimitPerMinute ?? null}::int, ${concurrentTasks ?? null}::int,
      ${expiresAt ? toDate(expiresAt) : null}::timestamptz, ${toDate(now)})`.pipe(
    rowsOf(Schema.Struct({ reserved: Schema.NullOr(Schema.Boolean) })),
    Effect.map(Array.head<KeyUpdate>)
  )
}

/** Each change locks the wallet, under which creates and calls read their key: none that has read it commits later. */
export function apiKeyChanges(sql: PgClient.PgClient) {
  return {
    /** `None` if the user has no such key. ADR 0160, 0190. */
    updateKey: (userId: UserId, id: ApiKeyId, change: KeyChange, now: DateTime.Utc) =>
      updateKey(sql, userId, id, change, now).pipe(
        audited(sql, (update) =>
          Option.exists(update, ({ reserved }) => reserved !== null)
            ? Option.some({ userId })
            : Option.none()
        ),
        storeFailures
      ),
    /**
     * `None`: the user has no such key. Otherwise whether a process has a reservation for the key: it read the key
     * before and may still admit calls (ADR 0116). Revoking a revoked key succeeds.
     */
    revokeKey: (userId: UserId, id: ApiKeyId, now: DateTime.Utc) =>
      sql`
        UPDATE api_keys k SET revoked_at = coalesce(k.revoked_at, ${toDate(now)}) FROM wallet_lock(${userId})
        WHERE k.id = ${id} AND k.user_id = ${userId} RETURNING k.id`.pipe(
        audited(sql, (rows) => (rows.length === 0 ? Option.none() : named())),
        Effect.flatMap((rows) => (rows.length === 0 ? Effect.succeedNone : reservedBy(sql, id))),
        storeFailures
      ),
    /**
     * Replaces the secret; the old one stays valid for its grace period. Otherwise like `revokeKey`. Console keys are
     * never rotated. ADR 0190.
     */
    rotateKey: (userId: UserId, id: ApiKeyId, { keyHash, oldUntil, preview }: KeyRotation) =>
      sql`
        UPDATE api_keys k SET previous_key_hash = k.key_hash, key_hash = ${keyHash}::bytea, preview = ${preview},
          previous_key_until = ${oldUntil === null ? null : toDate(oldUntil)}::timestamptz, rotations = k.rotations + 1
        FROM wallet_lock(${userId})
        WHERE k.id = ${id} AND k.user_id = ${userId} AND k.revoked_at IS NULL AND NOT k.is_console
        RETURNING k.id`.pipe(
        audited(sql, (rows) => (rows.length === 0 ? Option.none() : Option.some({ userId }))),
        Effect.flatMap((rows) => (rows.length === 0 ? Effect.succeedNone : reservedBy(sql, id))),
        storeFailures
      ),
    /** Records when the key was last used, at most once a minute. */
    touchKey: (id: ApiKeyId, now: DateTime.Utc) =>
      sql`
        UPDATE api_keys SET last_used_at = ${toDate(now)}
        WHERE id = ${id} AND (last_used_at IS NULL OR last_used_at < ${toDate(now)}::timestamptz - interval '1 minute')`.pipe(
        Effect.asVoid,
        storeFailures
      )
  }
}

/**
 * Whether a process has a reservation for the key. Runs after the commit, so it sees every reservation that was opened
 * before the change.
 */
const reservedBy = (sql: PgClient.PgClient, id: ApiKeyId) =>
  Effect.map(
    sql`SELECT FROM holds WHERE kind = 'reservation' AND api_key_id = ${id} LIMIT 1`,
    (open) => Option.some(open.length > 0)
  )

export interface ConsoleKey {
  readonly id: ApiKeyId
  readonly userId: UserId
  readonly keyHash: Uint8Array
  /** The key's monthly spend limit; `null` for none. */
  readonly monthly: Credits | null
  readonly now: DateTime.Utc
}

const HashRow = Schema.Struct({ keyHash: Bytes })

/** The keys with which sessions use models. ADR 0172 */
export function consoleKeys(sql: PgClient.PgClient) {
  const first = <E, R>(rows: Effect.Effect<ReadonlyArray<unknown>, E, R>) =>
    rows.pipe(
      rowsOf(HashRow),
      Effect.map((found) => Option.map(Array.head(found), ({ keyHash }) => keyHash))
    )
  const known = (userId: UserId) =>
    first(sql`
      SELECT key_hash FROM api_keys
      WHERE user_id = ${userId} AND is_console AND revoked_at IS NULL`)
  return {
    keyHash: (id: ApiKeyId) =>
      first(sql`SELECT key_hash FROM api_keys WHERE id = ${id}`).pipe(storeFailures),
    /**
     * The hash of the user's console key; creates the key with the given hash if the user has none. `None` if the user
     * does not exist.
     */
    consoleKeyHash: (key: ConsoleKey) =>
      Effect.gen(function* () {
        const found = yield* known(key.userId)
        if (Option.isSome(found)) return found
        yield* sql.withTransaction(makeConsoleKey(sql, key))
        // Another request has just created it
        return yield* known(key.userId)
      }).pipe(storeFailures)
  }
}

/** Inserts the key and its spend limit in one transaction. */
const makeConsoleKey = Effect.fnUntraced(function* (
  sql: PgClient.PgClient,
  { id, keyHash, monthly, now, userId }: ConsoleKey
) {
  // Lock the wallet first, as everywhere
  yield* sql`SELECT FROM wallet_lock(${userId})`
  const made = yield* sql`
    INSERT INTO api_keys (id, user_id, key_hash, preview, name, scopes, created_at, is_console,
      user_rate_limit_per_minute)
    SELECT ${id}, u.id, ${keyHash}::bytea, ${consolePreview}, ${consoleName}, '{inference}',
      ${toDate(now)}::timestamptz, true, u.rate_limit_per_minute
    FROM users u WHERE u.id = ${userId} AND u.disabled_at IS NULL FOR SHARE OF u
    ON CONFLICT (user_id) WHERE is_console AND revoked_at IS NULL DO NOTHING
    RETURNING id`
  if (made.length === 0 || monthly === null) return
  yield* sql`
    SELECT FROM api_key_update(${userId}, ${id}, '{spend_limit}', NULL, ${monthly}::bigint, 'monthly', NULL, NULL,
      NULL, NULL, ${toDate(now)})`
})

/** Shown instead of a key's last characters. */
const consolePreview = "console"
const consoleName = "Console"
