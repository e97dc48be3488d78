/**
 * Pairs of hold and settle per second through `TaskStore` (accept, then finish, with all their rows) on one wallet and on
 * a thousand, compared with `pgbench`, which writes the same rows in the same run.
 *
 *     DATABASE_URL=postgres://… node bench/wallet.ts [seconds] [clients] [rounds]
 *
 * The database must be empty; `pgbench` must be on the PATH. Figures are medians of the rounds.
 */
import { PgClient } from "@effect/sql-pg"
import { Effect, Layer, Redacted } from "effect"
import { execFileSync } from "node:child_process"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { layerPostgres } from "../src/db/Database.ts"
import * as Migrations from "../src/db/Migrations.ts"
import type { UserId } from "../src/domain/Ids.ts"
import { accept, breaches, finish, newWallet, walletStores } from "../test/support/wallets.ts"
import { median } from "./measures.ts"

const url = process.env.DATABASE_URL
if (url === undefined) throw new Error("Set DATABASE_URL to an empty Postgres database")
const [seconds = 5, clients = 64, rounds = 3] = process.argv.slice(2).map(Number)
const walletsMax = 1000

const pairs = (wallets: ReadonlyArray<UserId>) =>
  Effect.gen(function* () {
    const end = performance.now() + seconds * 1000
    let done = 0
    const client = Effect.gen(function* () {
      while (performance.now() < end) {
        const userId = wallets[Math.floor(Math.random() * wallets.length)]!
        const { outcome, taskId } = yield* accept(userId, 7.5)
        if (outcome._tag !== "Accepted") throw new Error(outcome._tag)
        yield* finish(taskId, 7.5)
        done += 1
      }
    })
    const started = performance.now()
    yield* Effect.all(
      Array.from({ length: clients }, () => client),
      { concurrency: "unbounded" }
    )
    return (done / (performance.now() - started)) * 1000
  })

/** The same rows in two transactions of plain statements; `:u` is the wallet. */
const script = (wallets: number) => `
\\set n random(1, ${wallets})
SELECT user_id AS u, gen_random_uuid() AS t, 'evt_' || gen_random_uuid() AS e, 'evt_' || gen_random_uuid() AS f
  FROM bench_wallets WHERE n = :n \\gset
BEGIN;
UPDATE wallets SET held = held + 7500000, entry_count = entry_count + 1
  WHERE user_id = :u::uuid AND settled - held >= 7500000
  RETURNING settled AS s, held AS h, entry_count AS c \\gset
INSERT INTO holds (id, user_id, kind, amount, created_at) VALUES (:t::uuid, :u::uuid, 'task', 7500000, now());
INSERT INTO wallet_entries (user_id, seq, kind, amount, settled_after, held_after, operation_id, subject_id, trace_id, created_at)
  VALUES (:u::uuid, :c, 'hold', 7500000, :s, :h, 'hold:' || :t::text, :t::uuid, '', now());
INSERT INTO tasks (id, user_id, vendor, model, action, result_kind, status, body, sandbox, price, trace_id, created_at, updated_at)
  VALUES (:t::uuid, :u::uuid, 'alibaba', 'text-to-image-max', 'generation', 'images', 'pending', '{"prompt":"a turtle"}', true, 7500000, '', now(), now());
INSERT INTO runs (task_id, deadline_at) VALUES (:t::uuid, now());
INSERT INTO events (id, created_at, user_id, type, task_id, body, trace_id)
  VALUES (:e, now(), :u::uuid, 'task.created', :t::uuid, convert_to(:e, 'UTF8'), '');
COMMIT;
BEGIN;
DELETE FROM runs WHERE task_id = :t::uuid;
UPDATE tasks SET status = 'completed', result = '["https://example.com/1"]', captured = 7500000, updated_at = now()
  WHERE id = :t::uuid;
INSERT INTO events (id, created_at, user_id, type, task_id, body, trace_id)
  VALUES (:f, now(), :u::uuid, 'task.succeeded', :t::uuid, convert_to(:f, 'UTF8'), '');
DELETE FROM holds WHERE id = :t::uuid;
UPDATE wallets SET held = held - 7500000, settled = settled - 7500000, entry_count = entry_count + 1
  WHERE user_id = :u::uuid RETURNING settled AS s, held AS h, entry_count AS c \\gset
INSERT INTO wallet_entries (user_id, seq, kind, amount, settled_after, held_after, operation_id, subject_id, trace_id, created_at)
  VALUES (:u::uuid, :c, 'capture', 7500000, :s, :h, 'capture:' || :t::text, :t::uuid, '', now());
COMMIT;
`

const folder = mkdtempSync(join(tmpdir(), "bench-wallet-"))

const pgbench = (wallets: number) =>
  Effect.sync(() => {
    const file = join(folder, `${wallets}.sql`)
    writeFileSync(file, script(wallets))
    const args = ["-n", "-M", "prepared", "-c", String(clients), "-j", "2", "-T", String(seconds)]
    const text = execFileSync("pgbench", [...args, "-f", file, url], { encoding: "utf8" })
    const tps = Number(/tps = ([\d.]+)/u.exec(text)?.[1])
    const failed = /number of failed transactions: (\d+)/u.exec(text)?.[1] ?? "0"
    if (Number.isNaN(tps) || failed !== "0") throw new Error(text)
    return tps
  })

const bench = Effect.gen(function* () {
  const sql = yield* PgClient.PgClient
  const wallets = yield* Effect.forEach(
    Array.from({ length: walletsMax }),
    () => newWallet(1_000_000_000),
    { concurrency: 32 }
  )
  yield* sql`CREATE TABLE bench_wallets (n int PRIMARY KEY, user_id uuid NOT NULL)`
  yield* sql`INSERT INTO bench_wallets SELECT row_number() OVER (), user_id FROM wallets`
  yield* sql`ANALYZE`
  const hot = wallets.slice(0, 1)
  yield* pairs(wallets)
  const figures: Record<string, Array<number>> = {}
  const measure = Effect.fnUntraced(function* <E, R>(
    name: string,
    effect: Effect.Effect<number, E, R>
  ) {
    const value = yield* effect
    ;(figures[name] ??= []).push(value)
    console.log(`${name.padEnd(32)} ${value.toFixed(0).padStart(7)} pairs/s`)
  })
  for (let round = 0; round < rounds; round += 1) {
    yield* measure("gateway, 1 wallet", pairs(hot))
    yield* measure("gateway, 1000 wallets", pairs(wallets))
    yield* measure("pgbench, 1 wallet", pgbench(1))
    yield* measure("pgbench, 1000 wallets", pgbench(walletsMax))
  }
  const of = (name: string) => median(figures[name] ?? [])
  console.log(`\nmedians of ${rounds} rounds of ${seconds} s, ${clients} clients`)
  for (const name of Object.keys(figures)) {
    console.log(`${name.padEnd(32)} ${of(name).toFixed(0).padStart(7)} pairs/s`)
  }
  const share = (a: string, b: string) => `${((of(a) / of(b)) * 100).toFixed(0)} %`
  console.log(
    `one wallet of a thousand:        ${share("gateway, 1 wallet", "gateway, 1000 wallets")}`
  )
  console.log(
    `one wallet of pgbench's spread:  ${share("gateway, 1 wallet", "pgbench, 1000 wallets")}`
  )
  const broken = yield* breaches
  console.log(`breaches of the invariants: ${broken}`)
  if (broken !== 0) throw new Error("the ledger is broken")
})

const database = layerPostgres({ url: Redacted.make(url) })
const live = Layer.provideMerge(walletStores, Layer.provideMerge(Migrations.layer(), database))

await Effect.runPromise(Effect.provide(bench, live)).finally(() =>
  rmSync(folder, { recursive: true, force: true })
)
