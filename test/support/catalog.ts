import { Effect } from "effect"
import { SqlClient } from "effect/sql/SqlClient"

/** Objects of the schema, without those of extensions. Names of day partitions end with the day. */
const ours = "n.nspname = 'public' AND c.relname !~ '_[0-9]{8}'"

const queries = [
  `SELECT concat_ws(' ', 'table', c.relname, c.relkind, c.relpersistence,
      (SELECT array_agg(o ORDER BY o) FROM unnest(c.reloptions) o), pg_get_expr(c.relpartbound, c.oid),
      pg_get_partkeydef(c.oid))
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE ${ours} AND c.relkind IN ('r', 'p', 'c')`,
  `SELECT concat_ws(' ', 'column', c.relname, a.attname, format_type(a.atttypid, a.atttypmod),
      CASE WHEN a.attnotnull THEN 'not null' END, pg_get_expr(d.adbin, d.adrelid))
    FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid JOIN pg_namespace n ON n.oid = c.relnamespace
    LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
    WHERE ${ours} AND c.relkind IN ('r', 'p', 'c', 'v') AND a.attnum > 0 AND NOT a.attisdropped`,
  // Not null is a property of the column above; newer servers have a constraint for it too.
  `SELECT concat_ws(' ', 'constraint', c.relname, k.conname, pg_get_constraintdef(k.oid), k.condeferrable, k.condeferred)
    FROM pg_constraint k JOIN pg_class c ON c.oid = k.conrelid JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE ${ours} AND k.contype <> 'n'`,
  `SELECT 'index ' || pg_get_indexdef(c.oid)
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE ${ours} AND c.relkind IN ('i', 'I')`,
  `SELECT pg_get_triggerdef(t.oid)
    FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE ${ours} AND NOT t.tgisinternal`,
  `SELECT concat('view ', c.relname, ' ', pg_get_viewdef(c.oid))
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE ${ours} AND c.relkind = 'v'`,
  `SELECT pg_get_functiondef(p.oid)
    FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace WHERE n.nspname = 'public'`
]

/** The catalog of the database: an entry for each object, in an order that names give. */
export const catalog = Effect.gen(function* () {
  const sql = yield* SqlClient
  const entries = yield* Effect.forEach(queries, (query) => sql.unsafe(query).values)
  return entries
    .flat()
    .map(([entry]) => String(entry))
    .sort()
})

/** The rows of every table, as JSON, in an order that they give; day partitions by their table. */
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
