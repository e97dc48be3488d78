import { PgClient } from "@effect/sql-pg"
import { Array, Context, Effect, Layer, Schema } from "effect"
import type { DateTime } from "effect"
import { retryDeadlock } from "../../db/BatchWrites.ts"
import { when } from "../../db/ListScan.ts"
import { rowOf, rowsOf, Time, toDate } from "../../db/Rows.ts"
import { storeFailures } from "../../db/StoreFailures.ts"
import { FileId, UserId } from "../../domain/Ids.ts"

export const FilePurpose = Schema.Literals(["batch", "batch_output"])

/** A user's file; the bytes are in the artifact store. docs/reference/files.md */
export class FileRow extends Schema.Class<FileRow>("FileRow")({
  id: FileId,
  userId: UserId,
  purpose: FilePurpose,
  filename: Schema.String,
  bytes: Schema.BigInt,
  createdAt: Time,
  expiresAt: Time
}) {}

export interface FilePage {
  readonly after: FileId | undefined
  readonly limit: number
  readonly isAscending: boolean
  readonly purpose: string | undefined
}

/** The most that a user may keep. */
export interface FileQuota {
  readonly bytes: number
  readonly files: number
}

export class FileStore extends Context.Service<FileStore>()("gateway/artifacts/FileStore", {
  make: Effect.map(PgClient.PgClient, (sql) => ({ ...reads(sql), ...writes(sql) }))
}) {
  static readonly layer = Layer.effect(FileStore, FileStore.make)
}

/** The largest `bigint` of Postgres. */
const unlimited = "9223372036854775807"

const columns = "f.id, f.user_id, f.purpose, f.filename, f.bytes, f.created_at, f.expires_at"

const Id = Schema.Struct({ id: FileId })
const ids = Array.map((row: typeof Id.Type) => row.id)

function reads(sql: PgClient.PgClient) {
  const shown = (userId: UserId, now: DateTime.Utc) =>
    [
      sql`f.user_id = ${userId}`,
      sql`f.deleted_at IS NULL`,
      sql`f.expires_at > ${toDate(now)}`
    ] as const
  return {
    /** The bytes that the user's files take up. */
    kept: (userId: UserId) =>
      sql`SELECT coalesce(sum(f.bytes), 0)::float8 AS kept FROM files f WHERE f.user_id = ${userId}`.pipe(
        rowOf(Schema.Struct({ kept: Schema.Finite })),
        Effect.map(({ kept }) => kept),
        storeFailures
      ),
    find: (userId: UserId, id: FileId, now: DateTime.Utc) =>
      sql`
        SELECT ${sql.literal(columns)} FROM files f
        WHERE ${sql.and([...shown(userId, now), sql`f.id = ${id}`])}`.pipe(
        rowsOf(FileRow),
        Effect.map(Array.head),
        storeFailures
      ),
    list: (userId: UserId, { after, isAscending, limit, purpose }: FilePage, now: DateTime.Utc) =>
      sql`
        SELECT ${sql.literal(columns)} FROM files f
        WHERE ${sql.and([
          ...shown(userId, now),
          ...when(after, (it) => (isAscending ? sql`f.id > ${it}` : sql`f.id < ${it}`)),
          ...when(purpose, (it) => sql`f.purpose = ${it}`)
        ])}
        ORDER BY f.id ${sql.literal(isAscending ? "ASC" : "DESC")} LIMIT ${limit}`.pipe(
        rowsOf(FileRow),
        storeFailures
      ),
    /** Files that are due for removal and that no unfinished batch reads, of all users or of one. */
    due: (now: DateTime.Utc, userId: UserId | undefined, limit: number) =>
      sql`
        SELECT id FROM files_due(${toDate(now)}::timestamptz, ${userId ?? null}::uuid, ${limit}::int) AS id`.pipe(
        rowsOf(Id),
        Effect.map(ids),
        storeFailures
      )
  }
}

function writes(sql: PgClient.PgClient) {
  const end = (userId: UserId, now: DateTime.Utc) =>
    sql`
      UPDATE files f SET deleted_at = ${toDate(now)}, expires_at = ${toDate(now)}
      WHERE f.user_id = ${userId} AND f.deleted_at IS NULL AND f.expires_at > ${toDate(now)}`
  return {
    /** Returns `false` if the user would keep more than the quota. Replaces the row of the same file. */
    add: (row: FileRow, quota: FileQuota | undefined) =>
      sql`
        SELECT file_add(
          ${row.id}, ${row.userId}::uuid, ${row.purpose}, ${row.filename}, ${String(row.bytes)}::bigint,
          ${toDate(row.createdAt)}::timestamptz, ${toDate(row.expiresAt)}::timestamptz,
          ${quota === undefined ? unlimited : String(quota.bytes)}::bigint,
          ${quota === undefined ? unlimited : String(quota.files)}::bigint) AS added`.pipe(
        rowOf(Schema.Struct({ added: Schema.Boolean })),
        Effect.map(({ added }) => added),
        retryDeadlock,
        storeFailures
      ),
    /** Hides a file and makes its removal due. Returns `false` if there is no such file. */
    delete: (userId: UserId, id: FileId, now: DateTime.Utc) =>
      sql`${end(userId, now)} AND f.id = ${id} RETURNING f.id`.pipe(
        rowsOf(Id),
        Effect.map(Array.isReadonlyArrayNonEmpty),
        storeFailures
      ),
    /** The same for all files of a user, also for those whose removal was postponed. */
    deleteAll: (userId: UserId, now: DateTime.Utc) =>
      sql`
        UPDATE files SET deleted_at = coalesce(deleted_at, ${toDate(now)}), expires_at = ${toDate(now)}
        WHERE user_id = ${userId} AND expires_at > ${toDate(now)}`.pipe(
        Effect.asVoid,
        storeFailures
      ),
    remove: (removed: ReadonlyArray<FileId>) =>
      sql`DELETE FROM files WHERE id = ANY(${removed}::text[])`.pipe(
        retryDeadlock,
        Effect.asVoid,
        storeFailures
      ),
    /** Retries the removal of these files an hour later. */
    postpone: (failed: ReadonlyArray<FileId>, until: DateTime.Utc) =>
      sql`
        UPDATE files SET deleted_at = coalesce(deleted_at, expires_at), expires_at = ${toDate(until)}
        WHERE id = ANY(${failed}::text[])`.pipe(Effect.asVoid, storeFailures)
  }
}
