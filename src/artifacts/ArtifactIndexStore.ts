import { PgClient } from "@effect/sql-pg"
import { Array, Context, Effect, Layer, Schema } from "effect"
import type { DateTime, Option } from "effect"
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

/** In place of the hash while the bytes are being written. */
export const unfinished = new Uint8Array()

/** The index of stored media. */
export class ArtifactIndexStore extends Context.Service<
  ArtifactIndexStore,
  {
    /** A row without a hash (`unfinished`) is not found until `finish` gives it one. */
    readonly add: (row: ArtifactRow) => Effect.Effect<void, StoreUnavailable>
    /** All bytes are written: records their count and hash. */
    readonly finish: (row: ArtifactRow) => Effect.Effect<void, StoreUnavailable>
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
    Effect.map(PgClient.PgClient, (sql) => {
      const Id = Schema.Struct({ id: ArtifactId })
      return ArtifactIndexStore.of({
        add: (a) =>
          sql`
            INSERT INTO artifacts (id, user_id, task_id, role, mime, bytes, sha256, created_at, expires_at)
            VALUES (${a.id}, ${a.userId}, ${a.taskId}, ${a.role}, ${a.mime}, ${a.bytes}, ${a.sha256},
              ${toDate(a.createdAt)}, ${toDate(a.expiresAt)})
            ON CONFLICT (id) DO NOTHING`.pipe(Effect.asVoid, storeFailures),
        finish: (a) =>
          sql`UPDATE artifacts SET bytes = ${a.bytes}, sha256 = ${a.sha256}
            WHERE id = ${a.id}`.pipe(Effect.asVoid, storeFailures),
        find: (id) =>
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
