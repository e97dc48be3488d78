import { PgClient } from "@effect/sql-pg"
import { Array, Context, DateTime, Effect, Layer, Schema } from "effect"
import { Batcher } from "../db/Batcher.ts"
import { groupCommit, hex, retryDeadlock } from "../db/BatchWrites.ts"
import { Bytes, rowsOf, Time, toDate } from "../db/Rows.ts"
import { storeFailures } from "../db/StoreFailures.ts"
import { ArtifactId, TaskId, UserId } from "../domain/Ids.ts"
import { artifactHours } from "../domain/limits/Limits.ts"

/** Metadata of a stored medium; the bytes are in the artifact store. */
export class ArtifactRow extends Schema.Class<ArtifactRow>("ArtifactRow")({
  id: ArtifactId,
  userId: UserId,
  taskId: TaskId,
  role: Schema.Literals(["input", "output"]),
  mime: Schema.String,
  bytes: Schema.BigInt,
  sha256: Bytes,
  createdAt: Time,
  expiresAt: Time
}) {}

/** The index of stored media. */
export class ArtifactIndexStore extends Context.Service<ArtifactIndexStore>()(
  "gateway/artifacts/ArtifactIndexStore",
  {
    make: Effect.gen(function* () {
      const sql = yield* PgClient.PgClient
      const Id = Schema.Struct({ id: ArtifactId })
      const { call } = yield* Batcher.make({
        ...groupCommit,
        run: (added: ReadonlyArray<Added>) => insert(sql, added)
      })
      return {
        /** Rows that are added concurrently are committed together. */
        add: (row: ArtifactRow) => Effect.asVoid(call({ row, inputBytesMax: unlimited })),
        /**
         * The same, within the user's quota. Returns false for an input that would exceed the user's maximum of stored
         * bytes; it is not added.
         */
        addWithin: (inputBytesMax: number, row: ArtifactRow) =>
          call({ row, inputBytesMax: String(inputBytesMax) }),
        find: (id: ArtifactId) =>
          // `expires_at` is when its removal is due, which may have been postponed
          sql`
            SELECT id, user_id, task_id, role, mime, bytes, sha256, created_at,
              created_at + ${lifetime}::interval AS expires_at
            FROM artifacts WHERE id = ${id}`.pipe(
            rowsOf(ArtifactRow),
            Effect.map(Array.head),
            storeFailures
          ),
        /** Artifacts that are due for removal, the longest overdue first. */
        expired: (now: DateTime.Utc, limit: number) =>
          sql`SELECT id FROM artifacts WHERE expires_at < ${toDate(now)} ORDER BY expires_at LIMIT ${limit}`.pipe(
            rowsOf(Id),
            Effect.map(Array.map((row) => row.id)),
            storeFailures
          ),
        /**
         * Postpones the next attempt to remove an artifact by as long as it has been due, between half an hour and 12
         * hours, so that others come first. Readers of the artifact see no change. ADR 0150.
         */
        postpone: (ids: ReadonlyArray<ArtifactId>, now: DateTime.Utc) =>
          sql`
            UPDATE artifacts SET expires_at = ${toDate(now)}::timestamptz + LEAST(interval '12 hours', GREATEST(
              interval '30 minutes', ${toDate(now)}::timestamptz - (created_at + ${lifetime}::interval)))
            WHERE id = ANY(${ids}::text[])`.pipe(retryDeadlock, Effect.asVoid, storeFailures),
        remove: (ids: ReadonlyArray<ArtifactId>) =>
          sql`SELECT FROM artifacts_remove(${ids}::text[])`.pipe(
            retryDeadlock,
            Effect.asVoid,
            storeFailures
          )
      }
    })
  }
) {
  static readonly layer = Layer.effect(ArtifactIndexStore, ArtifactIndexStore.make)
}

const lifetime = `${artifactHours} hours`

interface Added {
  readonly row: ArtifactRow
  readonly inputBytesMax: string
}

/** The largest `bigint` of Postgres. */
const unlimited = "9223372036854775807"

const Refused = Schema.Struct({ id: ArtifactId })

/** Inserts rows. Returns for each whether it was added. */
const insert = (sql: PgClient.PgClient, added: ReadonlyArray<Added>) => {
  const rows = added.map(({ row }) => row)
  return sql`
    SELECT id FROM artifacts_add(
      ${rows.map((row) => row.id)}::text[], ${rows.map((row) => row.userId)}::uuid[],
      ${rows.map((row) => row.taskId)}::uuid[], ${rows.map((row) => row.role)}::text[],
      ${rows.map((row) => row.mime)}::text[], ${rows.map((row) => String(row.bytes))}::bigint[],
      ${rows.map((row) => hex(row.sha256))}::bytea[],
      ${rows.map((row) => DateTime.formatIso(row.createdAt))}::timestamptz[],
      ${rows.map((row) => DateTime.formatIso(row.expiresAt))}::timestamptz[],
      ${added.map(({ inputBytesMax }) => inputBytesMax)}::bigint[]) AS id`.pipe(
    rowsOf(Refused),
    Effect.map((found) => {
      const refused = new Set(found.map(({ id }) => id))
      return rows.map(({ id }) => !refused.has(id))
    }),
    retryDeadlock,
    storeFailures
  )
}
