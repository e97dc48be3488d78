import { PgClient } from "@effect/sql-pg"
import { Array, Context, DateTime, Effect, Layer, Schema } from "effect"
import type { Option } from "effect"
import { Batcher } from "../db/Batcher.ts"
import { groupCommit, hex, retryDeadlock } from "../db/BatchWrites.ts"
import { Bytes, rowsOf, Time, toDate } from "../db/Rows.ts"
import { storeFailures } from "../db/StoreFailures.ts"
import { ArtifactId, TaskId, UserId } from "../domain/Ids.ts"
import type { StoreUnavailable } from "../domain/Problem.ts"

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
export class ArtifactIndexStore extends Context.Service<
  ArtifactIndexStore,
  {
    /** Rows that are added together are committed together. */
    readonly add: (row: ArtifactRow) => Effect.Effect<void, StoreUnavailable>
    readonly find: (id: ArtifactId) => Effect.Effect<Option.Option<ArtifactRow>, StoreUnavailable>
    readonly expired: (
      now: DateTime.Utc,
      limit: number
    ) => Effect.Effect<ReadonlyArray<ArtifactId>, StoreUnavailable>
    readonly remove: (ids: ReadonlyArray<ArtifactId>) => Effect.Effect<void, StoreUnavailable>
  }
>()("gateway/artifacts/ArtifactIndexStore") {
  static readonly layer = Layer.effect(
    ArtifactIndexStore,
    Effect.gen(function* () {
      const sql = yield* PgClient.PgClient
      const Id = Schema.Struct({ id: ArtifactId })
      const { call } = yield* Batcher.make({
        ...groupCommit,
        run: (rows: ReadonlyArray<ArtifactRow>) => Effect.as(insert(sql, rows), rows)
      })
      return ArtifactIndexStore.of({
        add: (row) => Effect.asVoid(call(row)),
        find: (id) =>
          // Without a hash it was left by a process that died, of a program before ADR 0150
          sql`SELECT * FROM artifacts WHERE id = ${id} AND sha256 <> ''`.pipe(
            rowsOf(ArtifactRow),
            Effect.map(Array.head),
            storeFailures
          ),
        expired: (now, limit) =>
          sql`SELECT id FROM artifacts WHERE expires_at < ${toDate(now)} ORDER BY expires_at LIMIT ${limit}`.pipe(
            rowsOf(Id),
            Effect.map(Array.map((row) => row.id)),
            storeFailures
          ),
        remove: (ids) =>
          sql`DELETE FROM artifacts WHERE id = ANY(${ids}::text[])`.pipe(
            Effect.asVoid,
            storeFailures
          )
      })
    })
  )
}

const insert = (sql: PgClient.PgClient, rows: ReadonlyArray<ArtifactRow>) =>
  sql`
    INSERT INTO artifacts (id, user_id, task_id, role, mime, bytes, sha256, created_at, expires_at)
    SELECT * FROM unnest(
      ${rows.map((row) => row.id)}::text[], ${rows.map((row) => row.userId)}::uuid[],
      ${rows.map((row) => row.taskId)}::uuid[], ${rows.map((row) => row.role)}::text[],
      ${rows.map((row) => row.mime)}::text[], ${rows.map((row) => String(row.bytes))}::bigint[],
      ${rows.map((row) => hex(row.sha256))}::bytea[],
      ${rows.map((row) => DateTime.formatIso(row.createdAt))}::timestamptz[],
      ${rows.map((row) => DateTime.formatIso(row.expiresAt))}::timestamptz[])
    ON CONFLICT (id) DO NOTHING`.pipe(retryDeadlock, storeFailures)
