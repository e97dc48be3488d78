import { PgClient } from "@effect/sql-pg"
import { Context, Effect, Layer, Option, Schema, String } from "effect"
import type { DateTime } from "effect"
import { ApiKeyId, UserId } from "../domain/Ids.ts"
import type { TaskId } from "../domain/Ids.ts"
import type { StoreUnavailable } from "../domain/Problem.ts"
import { Scope } from "../domain/Scope.ts"
import { storeFailures } from "./Failures.ts"
import { Time, toDate } from "./Rows.ts"
import { taskColumns, TaskView } from "./TaskStore.ts"

/** What is asked at the door: whose key, at which rate, and which task if one is meant. */
export interface AdmissionRequest {
  readonly keyHash: Uint8Array
  /** 0: no limit, and nothing is counted. */
  readonly perMinute: number
  readonly now: DateTime.Utc
  readonly taskId: Option.Option<TaskId>
}

/** A key as the door needs it. */
export interface AdmittedKey {
  readonly id: ApiKeyId
  readonly userId: UserId
  readonly scopes: ReadonlyArray<Scope>
  readonly expiresAt: DateTime.Utc | null
  readonly revokedAt: DateTime.Utc | null
  readonly lastUsedAt: DateTime.Utc | null
}

export interface Admission {
  readonly key: AdmittedKey
  /** `None`: nothing was counted, because there is no limit or the key is not fit for inference. */
  readonly rate: Option.Option<{
    readonly admitted: boolean
    readonly remaining: number
    readonly resetSeconds: number
  }>
  /** The task, if the key's user has it. */
  readonly task: Option.Option<TaskView>
}

/** The door of every inference request: key, request rate and task in one statement. */
export class AdmissionStore extends Context.Service<
  AdmissionStore,
  {
    /** `None`: no such key. */
    readonly admit: (
      request: AdmissionRequest
    ) => Effect.Effect<Option.Option<Admission>, StoreUnavailable>
  }
>()("gateway/store/AdmissionStore") {
  static readonly layer = Layer.effect(
    AdmissionStore,
    Effect.map(PgClient.PgClient, (sql) => {
      return AdmissionStore.of({
        admit: (request) =>
          Effect.flatMap(statementOf(sql, request).withoutTransform, ([row]) =>
            row === undefined ? Effect.succeedNone : Effect.asSome(admissionOf(row))
          ).pipe(storeFailures)
      })
    })
  )
}

const KeyRow = Schema.Struct({
  keyId: ApiKeyId,
  keyUserId: UserId,
  scopes: Schema.Array(Scope),
  expiresAt: Schema.NullOr(Time),
  revokedAt: Schema.NullOr(Time),
  lastUsedAt: Schema.NullOr(Time),
  admitted: Schema.optionalKey(Schema.NullOr(Schema.Boolean)),
  remaining: Schema.optionalKey(Schema.NullOr(Schema.Int)),
  resetSeconds: Schema.optionalKey(Schema.NullOr(Schema.Int))
})

const decodeKey = Schema.decodeUnknownEffect(KeyRow)
const decodeTask = Schema.decodeUnknownEffect(TaskView)

/** Named as the row's fields, so that the hottest statement needs no renaming in this process. */
const keyColumns = `k.id AS "keyId", k.user_id AS "keyUserId", k.scopes, k.expires_at AS "expiresAt",
  k.revoked_at AS "revokedAt", k.last_used_at AS "lastUsedAt"`
const countedColumns = `${keyColumns}, k.admitted, k.remaining, k.reset_seconds AS "resetSeconds"`
const namedTaskColumns = taskColumns.replaceAll(
  /t\.(\w+_\w+)/gu,
  (column, name: string) => `${column} AS "${String.snakeToCamel(name)}"`
)

function statementOf(sql: PgClient.PgClient, request: AdmissionRequest) {
  const { keyHash, now, perMinute } = request
  const taskId = Option.getOrUndefined(request.taskId)
  const key = sql.literal(keyColumns)
  const counted = sql.literal(countedColumns)
  const task = sql.literal(namedTaskColumns)
  if (perMinute === 0) {
    return taskId === undefined
      ? sql`SELECT ${key} FROM api_keys k WHERE k.key_hash = ${keyHash}`
      : sql`SELECT ${key}, ${task} FROM api_keys k
          LEFT JOIN tasks t ON t.id = ${taskId} AND t.user_id = k.user_id
          WHERE k.key_hash = ${keyHash}`
  }
  const admitted = sql`(
    SELECT (a.k).*, a.admitted, a.remaining, a.reset_seconds
    FROM api_key_admit(${keyHash}, ${perMinute}::int, ${toDate(now)}) a) k`
  return taskId === undefined
    ? sql`SELECT ${counted} FROM ${admitted}`
    : sql`SELECT ${counted}, ${task} FROM ${admitted}
        LEFT JOIN tasks t ON t.id = ${taskId} AND t.user_id = k.user_id`
}

const admissionOf = Effect.fnUntraced(function* (row: Readonly<Record<string, unknown>>) {
  const key = yield* decodeKey(row)
  const admission: Admission = {
    key: {
      id: key.keyId,
      userId: key.keyUserId,
      scopes: key.scopes,
      expiresAt: key.expiresAt,
      revokedAt: key.revokedAt,
      lastUsedAt: key.lastUsedAt
    },
    rate: Option.map(Option.fromNullishOr(key.admitted), (admitted) => ({
      admitted,
      remaining: key.remaining ?? 0,
      resetSeconds: key.resetSeconds ?? 0
    })),
    task: (row["id"] ?? null) === null ? Option.none() : Option.some(yield* decodeTask(row))
  }
  return admission
})
