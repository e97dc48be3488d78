import { PgClient } from "@effect/sql-pg"
import { Context, Effect, Layer, Schema } from "effect"
import { Bytes, rowsOf } from "../../db/Rows.ts"
import { storeFailures } from "../../db/StoreFailures.ts"

/** A column of values encrypted under the master key, and the primary key of its table. */
export interface SealedColumn {
  readonly table: string
  readonly column: string
  readonly key: readonly [string, string?]
}

/**
 * Every column encrypted under the master key. A rotated secret moves from `secret` to `previous_secret`, so a pass in
 * this order misses none.
 */
export const sealedColumns: ReadonlyArray<SealedColumn> = [
  { table: "webhook_endpoints", column: "secret", key: ["id"] },
  { table: "webhook_endpoints", column: "previous_secret", key: ["id"] },
  { table: "webhook_secrets", column: "secret", key: ["user_id"] },
  { table: "webhook_secrets", column: "previous_secret", key: ["user_id"] },
  { table: "vendor_accounts", column: "sealed", key: ["id"] },
  { table: "call_contents", column: "sealed", key: ["user_id", "call_id"] },
  { table: "manage_idempotency_keys", column: "response", key: ["caller", "key"] }
]

/** One encrypted value. `second` is empty if the primary key has one column. */
const SealedValue = Schema.Struct({ first: Schema.String, second: Schema.String, sealed: Bytes })
export type SealedValue = typeof SealedValue.Type

/** Reads and replaces the encrypted values of all tables. ADR 0222 */
export class SealedValueStore extends Context.Service<SealedValueStore>()(
  "gateway/process/SealedValueStore",
  {
    make: Effect.map(PgClient.PgClient, (sql) => {
      const keyOf = ({ key: [first, second] }: SealedColumn) => ({
        first: sql`${sql(first)}::text`,
        second: second === undefined ? sql.literal("''") : sql`${sql(second)}::text`
      })
      return {
        /** The next values after this one, ordered by primary key. */
        page: (
          place: SealedColumn,
          after: Pick<SealedValue, "first" | "second">,
          limit: number
        ) => {
          const key = keyOf(place)
          const column = sql(place.column)
          // The values of erased users are empty
          return sql`
            SELECT ${key.first} AS first, ${key.second} AS second, ${column} AS sealed
            FROM ${sql(place.table)}
            WHERE (${key.first}, ${key.second}) > (${after.first}, ${after.second})
              AND length(${column}) > 0
            ORDER BY 1, 2 LIMIT ${limit}`.pipe(rowsOf(SealedValue), storeFailures)
        },
        /** False if the value has changed since it was read. */
        replace: (place: SealedColumn, value: SealedValue, sealed: Uint8Array) => {
          const key = keyOf(place)
          const column = sql(place.column)
          return sql`
            UPDATE ${sql(place.table)} SET ${column} = ${Buffer.from(sealed)}
            WHERE ${key.first} = ${value.first} AND ${key.second} = ${value.second}
              AND ${column} = ${Buffer.from(value.sealed)}
            RETURNING true`.pipe(
            Effect.map((rows) => rows.length > 0),
            storeFailures
          )
        }
      }
    })
  }
) {
  static readonly layer = Layer.effect(SealedValueStore, SealedValueStore.make)
}
