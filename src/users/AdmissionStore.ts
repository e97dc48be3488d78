import { PgClient } from "@effect/sql-pg"
import { Context, DateTime, Effect, Layer, Option, Schema, String } from "effect"
import type { SqlClient } from "effect/sql/SqlClient"
import { Batcher } from "../db/Batcher.ts"
import { groupCommit, outcomes } from "../db/BatchWrites.ts"
import { rowOf, toDate } from "../db/Rows.ts"
import { storeFailures } from "../db/StoreFailures.ts"
import { taskColumns, TaskView } from "../db/TaskRow.ts"
import { ApiKeyId, UserId } from "../domain/Ids.ts"
import type { TaskId } from "../domain/Ids.ts"
import { Scope } from "../domain/Scope.ts"

/** What admission needs: the key, the rate limit, and the task that the path names, if any. */
export interface AdmissionRequest {
  readonly keyHash: Uint8Array
  /** 0 means no limit. If neither the key nor the user has a limit, nothing is counted. */
  readonly perMinute: number
  readonly userPerMinute: number
  readonly now: DateTime.Utc
  readonly taskId: Option.Option<TaskId>
}

/** The columns of a key that admission reads. */
export interface AdmittedKey {
  readonly id: ApiKeyId
  readonly userId: UserId
  readonly scopes: ReadonlyArray<Scope>
  readonly expiresAt: DateTime.Utc | null
  readonly revokedAt: DateTime.Utc | null
  readonly disabledAt: DateTime.Utc | null
  readonly lastUsedAt: DateTime.Utc | null
  /** `null`: all models are allowed. */
  readonly allowedModels: ReadonlyArray<string> | null
  /** `null`: only the limit of `AdmissionRequest` applies. */
  readonly rateLimitPerMinute: number | null
  /** The user's limit. `null`: the limit of `AdmissionRequest` applies. */
  readonly userRateLimitPerMinute: number | null
  /** How many times the key has been rotated. */
  readonly rotations: number
  /** How long the secret from before the latest rotation stays valid; `null` if it no longer is. */
  readonly previousUntil: DateTime.Utc | null | undefined
}

/** The state after this request of the limit that refused it; if none did, of the limit with the least remaining. */
export interface Rate extends Taken {
  readonly limit: number
  readonly of: "API key" | "user"
}

/** A rate-limit bucket after taking one request. */
export interface Taken {
  readonly admitted: boolean
  readonly remaining: number
  readonly resetSeconds: number
}

export interface Admission {
  readonly key: AdmittedKey
  /** `None` if nothing was counted, because there is no limit or the key may not use models. */
  readonly rate: Option.Option<Rate>
  /** The task, if it belongs to the key's user. */
  readonly task: Option.Option<TaskView>
}

/** Admits inference requests: checks the key and the rate limit and reads the task, in one statement. */
export class AdmissionStore extends Context.Service<AdmissionStore>()(
  "gateway/users/AdmissionStore",
  {
    make: Effect.gen(function* () {
      const client = yield* PgClient.PgClient
      const sql = client.withoutTransforms()
      const counted = (request: AdmissionRequest) =>
        Effect.map(countedStatement(sql, request), ([row]) => admissionOf(row)).pipe(storeFailures)
      // Requests that arrive together share a statement that starts after all of them have arrived. Measured with
      // `tasks --get`
      const uncounted = yield* Batcher.make({
        ...groupCommit,
        run: (requests: ReadonlyArray<AdmissionRequest>) =>
          Effect.map(uncountedStatement(sql, requests), (rows) =>
            outcomes(requests, rows, admissionOf)
          ).pipe(storeFailures)
      })
      return {
        /** `None` if the key does not exist. */
        admit: (request: AdmissionRequest) =>
          isCounted(request)
            ? counted(request)
            : Effect.flatMap(uncounted.call(request), (admission) =>
                // Otherwise the key has its own limit, or the secret is from before a rotation
                Option.exists(admission, ({ key }) => !hasRate(key))
                  ? Effect.succeed(admission)
                  : counted(request)
              ),
        /** Takes one of `capacity` from a bucket that refills evenly in `seconds`. ADR 0030. */
        take: (bucket: string, capacity: number, seconds: number, now: DateTime.Utc) =>
          client`
            SELECT admitted, remaining, reset_seconds FROM bucket_take(
              ${bucket}, ${capacity}::int, ${seconds}::float8, ${toDate(now)})`.pipe(
            rowOf(TakenRow),
            storeFailures
          ),
        /** Deletes buckets that have not been used since `before`. */
        deleteBuckets: (before: DateTime.Utc) =>
          client`DELETE FROM request_buckets WHERE filled_at < ${toDate(before)}`.pipe(
            Effect.asVoid,
            storeFailures
          )
      }
    })
  }
) {
  static readonly layer = Layer.effect(AdmissionStore, AdmissionStore.make)
}

/**
 * The rows of the most frequent statement. Times stay `Date`s when they are decoded, because a transformation would
 * make `Schema` take its slow path, which costs three times as much as everything else.
 */
const KeyRow = Schema.Struct({
  keyId: ApiKeyId,
  keyUserId: UserId,
  scopes: Schema.Array(Scope),
  expiresAt: Schema.NullOr(Schema.Date),
  revokedAt: Schema.NullOr(Schema.Date),
  disabledAt: Schema.NullOr(Schema.Date),
  lastUsedAt: Schema.NullOr(Schema.Date),
  allowedModels: Schema.NullOr(Schema.Array(Schema.String)),
  rateLimitPerMinute: Schema.NullOr(Schema.Int),
  userRateLimitPerMinute: Schema.NullOr(Schema.Int),
  rotations: Schema.Int
})
const PreviousRow = Schema.Struct({ previousUntil: Schema.NullOr(Schema.Date) })
const TakenRow = Schema.Struct({
  admitted: Schema.Boolean,
  remaining: Schema.Int,
  resetSeconds: Schema.Int
})
const RateRow = Schema.Struct({ ...TakenRow.fields, limited: Schema.Int, ofUser: Schema.Boolean })
const ViewRow = Schema.Struct({
  ...TaskView.fields,
  createdAt: Schema.Date,
  startedAt: Schema.NullOr(Schema.Date),
  updatedAt: Schema.Date
})

// A row that does not decode throws inside the effect and becomes a defect, as in every store
const decodeKey = Schema.decodeUnknownSync(KeyRow)
const decodePrevious = Schema.decodeUnknownSync(PreviousRow)
const decodeRate = Schema.decodeUnknownSync(RateRow)
const decodeTask = Schema.decodeUnknownSync(ViewRow)

/** Aliased to the row's field names, so that this process does not rename columns. */
const keyColumns = `k.id AS "keyId", k.user_id AS "keyUserId", k.scopes, k.expires_at AS "expiresAt",
  k.revoked_at AS "revokedAt", k.disabled_at AS "disabledAt", k.last_used_at AS "lastUsedAt",
  k.allowed_models AS "allowedModels", k.rate_limit_per_minute AS "rateLimitPerMinute",
  k.user_rate_limit_per_minute AS "userRateLimitPerMinute", k.rotations`
const countedColumns = `${keyColumns}, k.key_hash <> $1 AS "isPrevious",
  k.previous_key_until AS "previousUntil", k.limited, k.of_user AS "ofUser", k.admitted, k.remaining,
  k.reset_seconds AS "resetSeconds"`
const namedTaskColumns = taskColumns.replaceAll(
  /t\.(\w+_\w+)/gu,
  (column, name: string) => `${column} AS "${String.snakeToCamel(name)}"`
)

/** `$1` is an array of key hashes. The index lookups do not depend on the planner's statistics. */
const ofKeys = `SELECT (r.n - 1)::int AS n, ${keyColumns}
  FROM unnest($1::bytea[]) WITH ORDINALITY r (hash, n)
  CROSS JOIN LATERAL (SELECT * FROM api_keys WHERE key_hash = r.hash OFFSET 0) k`
const ofKeysAndTasks = `SELECT (r.n - 1)::int AS n, ${keyColumns}, ${namedTaskColumns}
  FROM unnest($1::bytea[], $2::uuid[]) WITH ORDINALITY r (hash, task, n)
  CROSS JOIN LATERAL (SELECT * FROM api_keys WHERE key_hash = r.hash OFFSET 0) k
  LEFT JOIN LATERAL (SELECT * FROM tasks WHERE id = r.task AND user_id = k.user_id OFFSET 0) t ON true`

/** `$1` is the hash of the key. */
const admittedBy = `FROM (
    SELECT (a.k).*, a.limited, a.of_user, a.admitted, a.remaining, a.reset_seconds
    FROM inference_admit($1, $2::int, $3::int, $4) a) k`
const countedKey = `SELECT ${countedColumns} ${admittedBy}`
const countedKeyAndTask = `SELECT ${countedColumns}, ${namedTaskColumns} ${admittedBy}
  LEFT JOIN tasks t ON t.id = $5 AND t.user_id = k.user_id`

/** Whether the key or its user has its own rate limit. */
export const hasRate = ({ rateLimitPerMinute, userRateLimitPerMinute }: AdmittedKey): boolean =>
  rateLimitPerMinute !== null || userRateLimitPerMinute !== null

const isCounted = ({ perMinute, userPerMinute }: AdmissionRequest): boolean =>
  perMinute > 0 || userPerMinute > 0

type Row = Readonly<Record<string, unknown>>
/** A row with the index of its request. */
type IndexedRow = Row & { readonly n: number }

const uncountedStatement = (sql: SqlClient, requests: ReadonlyArray<AdmissionRequest>) => {
  const hashes = requests.map(({ keyHash }) => keyHash)
  const tasks = requests.map(({ taskId }) => Option.getOrNull(taskId))
  return tasks.every((id) => id === null)
    ? sql.unsafe<IndexedRow>(ofKeys, [hashes])
    : sql.unsafe<IndexedRow>(ofKeysAndTasks, [hashes, tasks])
}

const countedStatement = (sql: SqlClient, request: AdmissionRequest) => {
  const { keyHash, now, perMinute, taskId, userPerMinute } = request
  const limits = [keyHash, perMinute, userPerMinute, toDate(now)]
  return Option.isNone(taskId)
    ? sql.unsafe<Row>(countedKey, limits)
    : sql.unsafe<Row>(countedKeyAndTask, [...limits, taskId.value])
}

const utc = (date: Date): DateTime.Utc => DateTime.fromDateUnsafe(date)
const utcOrNull = (date: Date | null): DateTime.Utc | null => (date === null ? null : utc(date))

const admissionOf = (row: Row | undefined): Option.Option<Admission> => {
  if (row === undefined) return Option.none()
  const key = decodeKey(row)
  return Option.some({
    key: {
      id: key.keyId,
      userId: key.keyUserId,
      scopes: key.scopes,
      expiresAt: utcOrNull(key.expiresAt),
      revokedAt: utcOrNull(key.revokedAt),
      disabledAt: utcOrNull(key.disabledAt),
      lastUsedAt: utcOrNull(key.lastUsedAt),
      allowedModels: key.allowedModels,
      rateLimitPerMinute: key.rateLimitPerMinute,
      userRateLimitPerMinute: key.userRateLimitPerMinute,
      rotations: key.rotations,
      previousUntil:
        row["isPrevious"] === true ? utcOrNull(decodePrevious(row).previousUntil) : undefined
    },
    rate: (row["limited"] ?? null) === null ? Option.none() : Option.some(rateOf(decodeRate(row))),
    task: (row["id"] ?? null) === null ? Option.none() : Option.some(viewOf(decodeTask(row)))
  })
}

const rateOf = ({ limited, ofUser, ...taken }: typeof RateRow.Type): Rate => ({
  ...taken,
  limit: limited,
  of: ofUser ? "user" : "API key"
})

const viewOf = (row: typeof ViewRow.Type): TaskView => ({
  ...row,
  createdAt: utc(row.createdAt),
  startedAt: utcOrNull(row.startedAt),
  updatedAt: utc(row.updatedAt)
})
