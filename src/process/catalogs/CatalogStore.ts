import { PgClient } from "@effect/sql-pg"
import { Array, Context, Effect, Layer, Schema } from "effect"
import type { DateTime } from "effect"
import type { HashedContent } from "../../catalog/CatalogContent.ts"
import { audited, named } from "../../db/Audited.ts"
import { rowOf, rowsOf, Time, toDate } from "../../db/Rows.ts"
import { storeFailures } from "../../db/StoreFailures.ts"

export interface StoredCatalog {
  readonly id: number
  readonly hash: string
  readonly text: string
  /** Null if the catalog has never been adopted. */
  readonly adoptedAt: DateTime.Utc | null
}

/** The catalog that all processes use, and since when. */
export interface Adoption {
  readonly adoption: number
  readonly catalog: number
  readonly hash: string
  /** Null for callers that already have the text. */
  readonly text: string | null
  readonly adoptedAt: DateTime.Utc
}

/** The request of a process that is starting or was asked to reload its file. */
export interface AdoptionRequest {
  readonly catalog: HashedContent
  readonly processId: string
  readonly isStart: boolean
  /** Processes with a heartbeat at this time or later are alive. */
  readonly aliveSince: DateTime.Utc
  readonly now: DateTime.Utc
}

/** Stores catalogs by their hash and records when each was adopted. ADR 0156. */
export class CatalogStore extends Context.Service<CatalogStore>()("gateway/process/CatalogStore", {
  make: Effect.map(PgClient.PgClient, (sql) => {
    const one = <E>(statement: Effect.Effect<ReadonlyArray<unknown>, E>) =>
      statement.pipe(rowsOf(Stored), Effect.map(Array.head), storeFailures)
    const stored = sql.literal(
      "c.id, c.hash, c.text, (SELECT max(a.adopted_at) FROM catalog_adoptions a WHERE a.catalog_id = c.id) " +
        "AS adopted_at FROM catalogs c"
    )
    return {
      /**
       * Stores and adopts a catalog in one transaction. Returns the latest adoption, which may be of another catalog.
       */
      adopt: ({ aliveSince, catalog, isStart, now, processId }: AdoptionRequest) =>
        sql`
          SELECT * FROM catalog_adopt(${catalog.hash}, ${catalog.text}, ${processId}, ${isStart},
            ${toDate(aliveSince)}, ${toDate(now)})`.pipe(
          rowOf(AdoptionRow),
          audited(sql, named),
          storeFailures
        ),
      /** The latest adoption. `known` is the id of the caller's catalog, whose text is not read again. */
      latest: (known: number) =>
        sql`SELECT * FROM catalog_adopted(${known}) WHERE adoption IS NOT NULL`.pipe(
          rowsOf(AdoptionRow),
          Effect.map(Array.head),
          storeFailures
        ),
      byId: (id: number) => one(sql`SELECT ${stored} WHERE c.id = ${id}`),
      byHash: (hash: string) => one(sql`SELECT ${stored} WHERE c.hash = ${hash}`),
      /** The catalog that was adopted at a given time. */
      at: (time: DateTime.Utc) =>
        one(sql`
          SELECT c.id, c.hash, c.text, a.adopted_at FROM catalog_adoptions a JOIN catalogs c ON c.id = a.catalog_id
          WHERE a.adopted_at <= ${toDate(time)} ORDER BY a.adopted_at DESC, a.id DESC LIMIT 1`)
    }
  })
}) {
  static readonly layer = Layer.effect(CatalogStore, CatalogStore.make)
}

const Stored = Schema.Struct({
  id: Schema.Int,
  hash: Schema.String,
  text: Schema.String,
  adoptedAt: Schema.NullOr(Time)
})

const AdoptionRow = Schema.Struct({
  adoption: Schema.Int,
  catalog: Schema.Int,
  hash: Schema.String,
  text: Schema.NullOr(Schema.String),
  adoptedAt: Time
})
