/**
 * How late attempts begin, in milliseconds after their due time, while receivers keep up; what a
 * process with as many waiting ones costs; and whether a flood of one endpoint is felt by others.
 *
 *   node bench/lateness.ts [deliveries] [spread in seconds]
 */
import { PgClient } from "@effect/sql-pg"
import { Effect } from "effect"
import { EndpointId } from "../src/domain/Ids.ts"
import { Wake } from "../src/services/Wake.ts"
import { cpuMillis, database, makeEndpoints, queue, receiver, sending } from "./support.ts"

const deliveries = Number(process.argv[2] ?? 10_000)
const spreadSeconds = Number(process.argv[3] ?? 10)
const endpoints = Math.ceil(deliveries / 100)
const flood = 3000

const percentiles = (what: string, late: ReadonlyArray<number>) => {
  const sorted = [...late].sort((a, b) => a - b)
  const at = (share: number) => (sorted[Math.floor(sorted.length * share)] ?? Number.NaN).toFixed(1)
  console.log(
    `${what}: ${sorted.length} attempts, lateness ms p50 ${at(0.5)}, p99 ${at(0.99)}, p99.9 ${at(0.999)}, max ${at(0.999999)}`
  )
}

const lateness = Effect.gen(function* () {
  const sql = yield* PgClient.PgClient
  const rows = yield* sql`
    SELECT extract(epoch FROM started_at - due_at)::float8 * 1000 AS late, endpoint_id,
      extract(epoch FROM due_at - min(due_at) OVER ())::float8 AS second
    FROM delivery_attempts`
  return rows.map((row) => ({
    late: Number(row["late"]),
    endpoint: String(row["endpointId"]),
    second: Number(row["second"])
  }))
})

const untilLeft = Effect.fnUntraced(function* (left: number) {
  const sql = yield* PgClient.PgClient
  while (true) {
    const rows = yield* sql`SELECT count(*)::int AS n FROM delivery_queue`
    if (Number(rows[0]?.["n"]) <= left) return
    yield* Effect.sleep("200 millis")
  }
})

const fallingDue = Effect.fnUntraced(function* (url: string, first: number, withFlood: boolean) {
  const sql = yield* PgClient.PgClient
  const wake = yield* Wake
  yield* makeEndpoints(endpoints, url, first)
  yield* queue(deliveries, endpoints, 12, spreadSeconds, first)
  if (withFlood) {
    yield* sql`
      INSERT INTO webhook_endpoints SELECT 'whe_flood', user_id, url, events, description, enabled, secret,
        secret_preview, previous_secret, previous_secret_until, created_at, updated_at, deleted_at
      FROM webhook_endpoints LIMIT 1`
    yield* sql`
      WITH d AS (
        INSERT INTO deliveries
        SELECT time_sorted_id('whd_', d.created_at), d.created_at, d.user_id, 'whe_flood', d.event_id,
          d.event_created_at, d.event_type, d.task_id, d.status, 0, d.updated_at
        FROM deliveries d LIMIT ${flood}::int RETURNING id, created_at
      )
      INSERT INTO delivery_queue (id, created_at, endpoint_id, due_at)
      SELECT id, created_at, 'whe_flood', created_at FROM d`
    yield* wake.endpoints([EndpointId.make("whe_flood")])
  } else {
    // All waiting, none due yet
    yield* Effect.sleep("2 seconds")
    const before = cpuMillis()
    yield* Effect.sleep("8 seconds")
    const share = (cpuMillis() - before) / 80
    console.log(`${deliveries} waiting: ${share.toFixed(2)} % of a core (goal below 2)`)
  }
  yield* untilLeft(withFlood ? flood - 600 : 0)
  const all = yield* lateness
  const others = all.filter((row) => row.endpoint !== "whe_flood")
  percentiles(
    `${deliveries} due within ${spreadSeconds} s on ${endpoints} endpoints${withFlood ? `, one more flooded with ${flood}` : ""}`,
    others.map((row) => row.late)
  )
  percentiles(
    "  of these, all but the first second",
    others.filter((row) => row.second >= 1).map((row) => row.late)
  )
  if (withFlood) console.log(`the flooded endpoint got ${all.length - others.length} (limit 600)`)
})

const program = Effect.gen(function* () {
  const databaseUrl = yield* database
  const { ca, url } = yield* receiver()
  yield* Effect.gen(function* () {
    yield* fallingDue(url, 1, false)
    yield* fallingDue(url, endpoints + 1, true)
  }).pipe(Effect.provide(sending(databaseUrl, ca)))
}).pipe(Effect.scoped)

await Effect.runPromise(program)
process.exit(0)
