/** The statements of an operation and what each one reads, to see where and why the stores differ. */
import { PgClient } from "@effect/sql-pg"
import { Effect } from "effect"
import type { Client } from "pg"

export interface StatementCost {
  readonly text: string
  readonly isInner: boolean
  readonly calls: number
  readonly buffers: number
  /** Microseconds of real time for planning and for execution. */
  readonly planned: number
  readonly executed: number
}

/** The costs of each statement in a store so far, including those inside functions if the server tracks them. */
export const statementCosts = async (admin: Client, store: string) => {
  const { rows } = await admin.query<StatementCost & { id: string }>(
    `SELECT s.toplevel || s.query AS id, NOT s.toplevel AS "isInner", s.query AS text,
      sum(s.calls)::float8 AS calls, sum(s.shared_blks_hit + s.shared_blks_read)::float8 AS buffers,
      sum(1000 * s.total_plan_time) AS planned, sum(1000 * s.total_exec_time) AS executed
    FROM pg_stat_statements s JOIN pg_database d ON d.oid = s.dbid WHERE d.datname = $1
    GROUP BY 1, 2, 3`,
    [store]
  )
  return new Map(rows.map(({ id, ...cost }) => [id, cost]))
}

type Costs = Awaited<ReturnType<typeof statementCosts>>

/** The costs between two readings, per unit. */
export const statementsBetween = (before: Costs, after: Costs, units: number): Costs => {
  const found: Costs = new Map()
  for (const [id, cost] of after) {
    const by = (key: "calls" | "buffers" | "planned" | "executed") =>
      (cost[key] - (before.get(id)?.[key] ?? 0)) / units
    if (by("calls") === 0) continue
    found.set(id, {
      ...cost,
      calls: by("calls"),
      buffers: by("buffers"),
      planned: by("planned"),
      executed: by("executed")
    })
  }
  return found
}

/**
 * The statements of both stores side by side, with the largest difference first: buffers, calls, planning and
 * execution.
 */
export const statementTable = (empty: Costs, grown: Costs): string => {
  const ids = [...new Set([...empty.keys(), ...grown.keys()])]
  const of = (key: "calls" | "buffers" | "planned" | "executed", id: string) =>
    [empty, grown].map((costs) => costs.get(id)?.[key] ?? 0)
  const difference = (id: string) => {
    const [before = 0, after = 0] = of("buffers", id)
    return Math.abs(after - before)
  }
  const pair = (values: ReadonlyArray<number>, digits: number) =>
    values.map((it) => it.toFixed(digits)).join(" ")
  return ids
    .sort((a, b) => difference(b) - difference(a))
    .map((id) => {
      const { isInner, text } = (grown.get(id) ?? empty.get(id))!
      const line = text.replaceAll(/\s+/gu, " ").slice(0, 160)
      return (
        `    ${pair(of("buffers", id), 1)}; ${pair(of("calls", id), 2)} calls; ` +
        `${pair(of("planned", id), 0)} + ${pair(of("executed", id), 0)} µs${isInner ? " >" : ""} ${line}`
      )
    })
    .join("\n")
}

/** The buffers of each table and index so far, with partitions counted for their table, on the measured connection. */
export const relationBuffers = Effect.gen(function* () {
  const sql = yield* PgClient.PgClient
  yield* sql`SELECT pg_stat_force_next_flush()`.unprepared
  const rows = yield* sql<{ name: string; buffers: number }>`
    SELECT regexp_replace(name, '_\d{8}', '_day') AS name, sum(buffers)::float8 AS buffers FROM (
      SELECT indexrelname AS name, idx_blks_hit + idx_blks_read AS buffers FROM pg_statio_user_indexes
      UNION ALL SELECT relname, heap_blks_hit + heap_blks_read FROM pg_statio_user_tables
    ) r GROUP BY 1`.unprepared
  return new Map(rows.map((row) => [row.name, row.buffers]))
})

export type RelationBuffers = Effect.Success<typeof relationBuffers>

export const relationsBetween = (before: RelationBuffers, after: RelationBuffers, units: number) =>
  new Map([...after].map(([name, n]) => [name, (n - (before.get(name) ?? 0)) / units] as const))

/** Where the stores differ, with the largest difference first. */
export const relationTable = (empty: RelationBuffers, grown: RelationBuffers): string => {
  const difference = (name: string) => (grown.get(name) ?? 0) - (empty.get(name) ?? 0)
  return [...new Set([...empty.keys(), ...grown.keys()])]
    .filter((name) => Math.abs(difference(name)) > 0.05)
    .sort((a, b) => Math.abs(difference(b)) - Math.abs(difference(a)))
    .map(
      (name) =>
        `    ${(empty.get(name) ?? 0).toFixed(1)} ${(grown.get(name) ?? 0).toFixed(1)} ${name}`
    )
    .join("\n")
}
