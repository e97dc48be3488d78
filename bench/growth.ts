/**
 * Compares a store that has a month of history with an empty one, both with 20,000 users on one server: statements,
 * buffers and CPU of Postgres for each operation. Slices alternate; figures are medians. See README.md.
 *
 *   node bench/growth.ts --fill=3600000           makes both stores, 12 kB a task; half an hour
 *   node bench/growth.ts [rounds]                 compares them
 *   node bench/growth.ts --start                  the service starts on the full store
 *   node bench/growth.ts --retention=5            drops and deletes the oldest days
 *
 * `--folder=` names their folder (/tmp/growth-store). `--only=list` measures the operations whose names begin with
 * `list`. `--statements` shows the statements of each operation, including those inside functions, which costs time.
 * `--relations` shows the tables and indexes whose buffers differ.
 */
import { Effect, Layer } from "effect"
import type { Context } from "effect"
import { fork } from "node:child_process"
import { mkdir, mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Client } from "pg"
import { newServer, stopServer } from "../test/support/postgresProcess.ts"
import { freePort } from "../test/support/spawnService.ts"
import { nothingOld, retention, vacuum, yesterday } from "./growthDuties.ts"
import { fill, migrate } from "./growthFill.ts"
import { Bench, layerOf, operations, people } from "./growthOperations.ts"
import type { Services } from "./growthOperations.ts"
import {
  relationBuffers,
  relationsBetween,
  relationTable,
  statementCosts,
  statementsBetween,
  statementTable
} from "./growthStatements.ts"
import type { RelationBuffers } from "./growthStatements.ts"
import { median } from "./measures.ts"
import { cpuMicros } from "./processes.ts"
import { builtService, startFlags } from "./startFlags.ts"

const option = (name: string) =>
  process.argv.find((it) => it.startsWith(`--${name}=`))?.slice(name.length + 3)
const folder = option("folder") ?? join(tmpdir(), "growth-store")
const count = Number(option("fill") ?? 0)
const days = Number(option("retention") ?? 0)
const only = option("only") ?? ""
const withStatements = process.argv.includes("--statements")
const withRelations = process.argv.includes("--relations")
const rounds = Number(process.argv.slice(2).find((it) => /^\d+$/u.test(it)) ?? 7)
const pause = (millis: number) => new Promise<void>((resolve) => setTimeout(resolve, millis))
/** Settings that fill a store fastest on one core. */
const bulk = [
  "wal_level=minimal",
  "max_wal_senders=0",
  "max_wal_size=4GB",
  "checkpoint_timeout=30min",
  "shared_buffers=1GB",
  "work_mem=256MB",
  "maintenance_work_mem=2GB",
  "max_parallel_workers_per_gather=0",
  "max_parallel_maintenance_workers=0"
]
/**
 * A server's usual settings, except for its memory. Autovacuum is off, because it would run on one of the stores first.
 */
const usual = [
  "fsync=on",
  "synchronous_commit=on",
  "full_page_writes=on",
  "max_wal_size=4GB",
  "shared_buffers=1GB",
  "shared_preload_libraries=pg_stat_statements",
  "pg_stat_statements.max=10000",
  ...(withStatements
    ? ["pg_stat_statements.track=all", "pg_stat_statements.track_planning=on"]
    : [])
]

const stores = ["empty", "grown"] as const
await mkdir(folder, { recursive: true })
const server = await newServer(folder, count > 0 ? bulk : usual)
await server.start()
const urlOf = (store: string) => server.url.replace(/postgres$/u, store)
const admin = new Client(server.url)
await admin.connect()

interface Slice {
  readonly units: number
  readonly calls: number
  readonly buffers: number
  readonly read: number
  readonly wal: number
  readonly micros: number
  readonly statements: ReturnType<typeof statementsBetween>
  readonly relations: RelationBuffers
}

/** Counters over all statements in a store so far. */
const counters = async (store: string, pid: number) => {
  const { rows } = await admin.query<Pick<Slice, "calls" | "buffers" | "read" | "wal">>(
    `SELECT sum(calls)::float8 AS calls, sum(shared_blks_hit + shared_blks_read)::float8 AS buffers,
      sum(shared_blks_read)::float8 AS read, sum(wal_bytes)::float8 AS wal
    FROM pg_stat_statements s JOIN pg_database d ON d.oid = s.dbid WHERE d.datname = $1 AND s.toplevel`,
    [store]
  )
  const { buffers = 0, calls = 0, read = 0, wal = 0 } = rows[0] ?? {}
  return { calls, buffers, read, wal, micros: cpuMicros(pid) }
}
const relationsOf = (side: Side) =>
  withRelations ? Effect.provide(relationBuffers, side.context) : Effect.succeed(new Map())
const costsOf = (store: string) =>
  Effect.promise(async () => (withStatements ? statementCosts(admin, store) : new Map()))

interface Side {
  readonly store: string
  readonly pid: number
  readonly context: Context.Context<Services>
  readonly bench: Bench
}

const sideOf = Effect.fnUntraced(function* (store: string) {
  const context = yield* Layer.build(layerOf(urlOf(store)))
  const bench = new Bench(yield* Effect.provide(people, context))
  // As after a start of the service: today's partitions exist
  yield* Effect.provide(nothingOld, context)
  yield* Effect.provide(yesterday, context)
  const { rows } = yield* Effect.promise(() =>
    admin.query<{ pid: number }>(
      "SELECT pid FROM pg_stat_activity WHERE datname = $1 ORDER BY backend_start DESC LIMIT 1",
      [store]
    )
  )
  return { bench, context, pid: rows[0]!.pid, store } satisfies Side
})

const slice = Effect.fnUntraced(function* (side: Side, n: number) {
  const [, operation, times] = operations(side.bench)[n]!
  const statementsBefore = yield* costsOf(side.store)
  const relationsBefore = yield* relationsOf(side)
  const before = yield* Effect.promise(() => counters(side.store, side.pid))
  let units = 0
  for (let k = 0; k < times; k += 1) units += yield* Effect.provide(operation, side.context)
  const after = yield* Effect.promise(() => counters(side.store, side.pid))
  return {
    units,
    calls: (after.calls - before.calls) / units,
    buffers: (after.buffers - before.buffers) / units,
    read: (after.read - before.read) / units,
    wal: (after.wal - before.wal) / units,
    micros: (after.micros - before.micros) / units,
    relations: relationsBetween(relationsBefore, yield* relationsOf(side), units),
    statements: statementsBetween(statementsBefore, yield* costsOf(side.store), units)
  } satisfies Slice
})

const compare = Effect.gen(function* () {
  const sides = yield* Effect.forEach(stores, sideOf)
  const names = operations(sides[0]!.bench).map(([name]) => name)
  // Writes cause work for each other, so a round runs all of them
  const found = names.map(() => sides.map(() => new Array<Slice>()))
  for (let round = -2; round < rounds; round += 1) {
    // Dead rows of earlier rounds would be read with those of a queue
    for (const { context } of sides) yield* Effect.provide(vacuum(round === 0), context)
    for (const [n, name] of names.entries()) {
      if (!name.startsWith(only) && !/^(create|finish|deliver)$/u.test(name)) continue
      for (const [s, side] of sides.entries()) {
        const one = yield* slice(side, n)
        // The first rounds warm up caches and plans
        if (round >= 0) found[n]![s]!.push(one)
      }
    }
  }
  for (const [n, name] of names.entries()) {
    const [empty, grown] = found[n]!.map((all) => ({
      calls: median(all.map((it) => it.calls)),
      buffers: median(all.map((it) => it.buffers)),
      read: median(all.map((it) => it.read)),
      wal: median(all.map((it) => it.wal)),
      micros: median(all.map((it) => it.micros))
    }))
    if (empty === undefined || grown === undefined || Number.isNaN(grown.calls)) continue
    const pair = (key: "calls" | "buffers" | "micros", digits: number) =>
      `${empty[key].toFixed(digits)} | ${grown[key].toFixed(digits)} | ${(grown[key] / empty[key]).toFixed(2)}`
    console.log(
      `| ${name} | ${pair("calls", 2)} | ${pair("buffers", 1)} | ${pair("micros", 0)} | ${grown.read.toFixed(1)} | ${grown.wal.toFixed(0)} |`
    )
    if (withRelations) {
      const [ofEmpty, ofGrown] = found[n]!.map((all) => all.at(-1)!.relations)
      console.log(relationTable(ofEmpty!, ofGrown!))
    }
    if (!withStatements) continue
    const [last, lastGrown] = found[n]!.map((all) => all.at(-1)!.statements)
    console.log(statementTable(last!, lastGrown!))
  }
}).pipe(Effect.scoped)

/** Milliseconds until the service, started for the first time on the full store, is ready. */
const startService = async () => {
  const dataDir = await mkdtemp(join(tmpdir(), "growth-"))
  const port = await freePort()
  const began = performance.now()
  const child = fork(builtService(), [], {
    execArgv: startFlags,
    env: {
      PATH: process.env.PATH,
      DATABASE_URL: urlOf("grown"),
      DATA_DIR: dataDir,
      PORT: `${port}`,
      ADMIN_TOKEN: "operator-token-of-the-bench",
      MASTER_KEY: Buffer.alloc(32, 1).toString("base64"),
      LOG_RETENTION: "36500 days"
    }
  })
  const isReady = () =>
    fetch(`http://127.0.0.1:${port}/readyz`).then(
      (it) => it.ok,
      () => false
    )
  while (!(await isReady()) && performance.now() < began + 60_000) await pause(20)
  console.log(`ready after ${((performance.now() - began) / 1000).toFixed(2)} s`)
  const ended = new Promise((resolve) => child.once("exit", resolve))
  child.kill("SIGTERM")
  await ended
  await rm(dataDir, { recursive: true, force: true })
}

try {
  if (count > 0) {
    for (const store of stores) {
      await admin.query(`CREATE DATABASE ${store}`)
      await fill(urlOf(store), store === "grown" ? count : 0)
    }
  } else if (process.argv.includes("--start")) {
    for (let n = 0; n < 3; n += 1) await startService()
  } else if (days > 0) {
    await Effect.runPromise(Effect.provide(retention(days), layerOf(urlOf("grown"))))
  } else {
    for (const store of stores) await migrate(urlOf(store))
    await admin.query("CREATE EXTENSION IF NOT EXISTS pg_stat_statements")
    await Effect.runPromise(compare)
  }
} finally {
  await admin.end()
  await stopServer(folder, "SIGINT")
}
process.exit(0)
