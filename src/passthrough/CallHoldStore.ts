import type { PgClient } from "@effect/sql-pg"
import { Effect, Schema } from "effect"
import { Micro, rowsOf } from "../db/Rows.ts"
import { storeFailures } from "../db/StoreFailures.ts"

/** The holds of a process for its calls. */
export interface HoldsLeft {
  /** Calls with their own hold. */
  readonly calls: ReadonlySet<string>
  /** The reservations, by key. */
  readonly reservations: ReadonlyMap<string, bigint>
}

const Left = Schema.Struct({
  id: Schema.String,
  key: Schema.NullOr(Schema.String),
  kind: Schema.Literals(["call", "reservation"]),
  amount: Micro
})

const leftOf = (rows: ReadonlyArray<typeof Left.Type>): HoldsLeft => ({
  calls: new Set(rows.flatMap(({ id, kind }) => (kind === "call" ? [id] : []))),
  reservations: new Map(
    rows.flatMap(({ amount, key, kind }) =>
      kind === "reservation" && key !== null ? [[key, amount] as const] : []
    )
  )
})

/** `CallStore.holdsLeft`. */
export const holdsLeft = (sql: PgClient.PgClient) => (processId: string) =>
  sql`
    SELECT h.id, h.api_key_id AS key, h.kind, h.amount FROM holds h
    WHERE h.process_id = ${processId} AND h.kind IN ('call', 'reservation')
      AND EXISTS (SELECT FROM processes p WHERE p.id = h.process_id AND p.left_at IS NULL)`.pipe(
    rowsOf(Left),
    Effect.map(leftOf),
    storeFailures
  )
