/**
 * How many milliseconds after their due time attempts start while receivers keep up, the CPU of a process with the same
 * number of waiting deliveries, and the effect of a flooded endpoint on others. For comparison, a bare loop sends the
 * same number at the same times, which is the most that this machine can do.
 *
 *   node bench/lateness.ts [deliveries] [spread in seconds]
 */
import { PgClient } from "@effect/sql-pg"
import { Effect } from "effect"
import { execFile } from "node:child_process"
import { fileURLToPath } from "node:url"
import { promisify } from "node:util"
import { EndpointId } from "../src/domain/Ids.ts"
import { WorkNotifier } from "../src/process/signals/WorkNotifier.ts"
import { cpuMillis, percentiles } from "./measures.ts"
import { startFlags, withStartFlags } from "./startFlags.ts"
import { database, makeEndpoints, postgresMicros, queue, receiver, sending } from "./support.ts"

withStartFlags()

const deliveries = Number(process.argv[2] ?? 10_000)
const spreadSeconds = Number(process.argv[3] ?? 10)
const endpoints = Math.ceil(deliveries / 100)
const flood = 3000

type Receiver = Effect.Success<ReturnType<typeof receiver>>

const bare = ({ ca, url }: Receiver) =>
  Effect.promise(async () => {
    const { stdout } = await promisify(execFile)(process.execPath, [
      ...startFlags,
      fileURLToPath(new URL("bareSender.ts", import.meta.url)),
      JSON.stringify({ ca, url, deliveries, spreadSeconds })
    ])
    process.stdout.write(stdout)
  })

const attempts = Effect.gen(function* () {
  const sql = yield* PgClient.PgClient
  const rows = yield* sql`
    SELECT delivery_id, endpoint_id, extract(epoch FROM due_at)::float8 * 1000 AS due,
      extract(epoch FROM started_at)::float8 * 1000 AS started,
      extract(epoch FROM due_at - min(due_at) OVER ())::float8 AS second
    FROM delivery_attempts`
  return rows.map((row) => ({
    id: String(row["deliveryId"]),
    endpoint: String(row["endpointId"]),
    due: Number(row["due"]),
    late: Number(row["started"]) - Number(row["due"]),
    second: Number(row["second"])
  }))
})

const untilLeft = Effect.fnUntraced(function* (left: number) {
  const sql = yield* PgClient.PgClient
  while (true) {
    const rows = yield* sql`SELECT 1 FROM delivery_queue LIMIT 1 OFFSET ${left}::int`
    if (rows.length === 0) return
    yield* Effect.sleep("100 millis")
  }
})

/** The CPU shares of process, Postgres and receiver while the work runs. */
const cpuShares = Effect.fnUntraced(function* <A, E, R>(
  receiving: Receiver,
  work: Effect.Effect<A, E, R>
) {
  const now = Effect.map(postgresMicros, (postgres) => ({
    process: cpuMillis() * 1000,
    postgres,
    receiver: receiving.cpuMicros()
  }))
  const before = yield* now
  yield* work
  const after = yield* now
  const each = (of: keyof typeof before) => ((after[of] - before[of]) / deliveries).toFixed(0)
  console.log(
    `  µs CPU each: process ${each("process")}, Postgres ${each("postgres")}, receiver ${each("receiver")}`
  )
})

/**
 * How long before the first due time deliveries are queued. Half of it is measured; then senders are opened ahead of
 * time.
 */
const leadSeconds = 32

const waiting = Effect.gen(function* () {
  yield* Effect.sleep("4 seconds")
  const before = cpuMillis()
  yield* Effect.sleep("16 seconds")
  const share = (cpuMillis() - before) / 160
  console.log(`${deliveries} waiting: ${share.toFixed(2)} % of a core (goal below 2)`)
  const atRest = cpuMillis()
  yield* Effect.sleep("10 seconds")
  const opening = cpuMillis() - atRest - share * 100
  console.log(`  ${endpoints} endpoint senders opened ahead: ${opening.toFixed(0)} ms of CPU, once`)
})

const floodOne = Effect.gen(function* () {
  const sql = yield* PgClient.PgClient
  const notifier = yield* WorkNotifier
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
  yield* notifier.notifyEndpoints([EndpointId.make("whe_flood")])
})

const fallingDue = Effect.fnUntraced(function* (
  receiving: Receiver,
  first: number,
  withFlood: boolean
) {
  yield* makeEndpoints(endpoints, receiving.url, first)
  yield* queue(deliveries, endpoints, withFlood ? 12 : leadSeconds, spreadSeconds, first)
  yield* withFlood ? floodOne : waiting
  yield* receiving.arrivals
  console.log(
    `${deliveries} due within ${spreadSeconds} s on ${endpoints} endpoints${withFlood ? `, and ${flood} on a flooded one` : ""}`
  )
  yield* cpuShares(receiving, untilLeft(withFlood ? flood - 600 : 0))
  const arrivals = yield* receiving.arrivals
  const all = yield* attempts
  const others = all.filter((row) => row.endpoint !== "whe_flood")
  const late = others.map((row) => row.late)
  const lateFrom = (second: number) =>
    others.filter((row) => row.second >= second).map((row) => row.late)
  console.log(percentiles("  started", late))
  const arrived = others.map((row) => (arrivals.get(row.id) ?? Number.NaN) - row.due)
  console.log(percentiles("  at the receiver", arrived))
  if (spreadSeconds > 1) console.log(percentiles("  started after the first second", lateFrom(1)))
  if (withFlood)
    console.log(`  the flooded endpoint received ${all.length - others.length} (limit 600)`)
})

const program = Effect.gen(function* () {
  const databaseUrl = yield* database
  const receiving = yield* receiver()
  yield* bare(receiving)
  yield* Effect.gen(function* () {
    yield* fallingDue(receiving, 1, false)
    yield* fallingDue(receiving, endpoints + 1, true)
  }).pipe(Effect.provide(sending(databaseUrl, receiving.ca)))
}).pipe(Effect.scoped)

await Effect.runPromise(program)
process.exit(0)
