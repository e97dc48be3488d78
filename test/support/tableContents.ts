import { Effect } from "effect"
import { SqlClient } from "effect/sql/SqlClient"

/** The rows of every table as JSON, sorted by content. Rows of daily partitions are listed under their table. */
export const contents = Effect.gen(function* () {
  const sql = yield* SqlClient
  const tables = yield* sql<{ name: string }>`
    SELECT c.relname AS name FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE n.nspname = 'public' AND c.relkind IN ('r', 'p') AND NOT c.relispartition ORDER BY 1`
  const rows = yield* Effect.forEach(tables, ({ name }) =>
    sql.unsafe<{ row: Record<string, unknown> }>(
      `SELECT to_jsonb(t) AS row FROM ${name} t ORDER BY to_jsonb(t)::text`
    )
  )
  return new Map(tables.map(({ name }, n) => [name, rows[n]!.map(({ row }) => row)]))
})
