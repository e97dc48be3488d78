import { assert, describe, it } from "@effect/vitest"
import { DateTime, Effect, Layer, Option, Redacted } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import { randomUUID } from "node:crypto"
import { copyFileSync, mkdtempSync, readdirSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath, pathToFileURL } from "node:url"
import { layerPostgres } from "../../../src/db/Database.ts"
import * as Migrations from "../../../src/db/Migrations.ts"
import { EndpointId, TaskId, UserId } from "../../../src/domain/Ids.ts"
import { DeliveryStore } from "../../../src/webhooks/DeliveryStore.ts"
import * as DeliveryStoreLive from "../../../src/webhooks/DeliveryStoreLive.ts"
import { mockOutcome } from "../../../src/webhooks/WebhookSender.ts"
import { freshDatabase } from "../../support/stores.ts"
import { accept, breaches, finish, walletStores } from "../../support/wallets.ts"

const directory = fileURLToPath(new URL("../../../schema/migrations/", import.meta.url))
const files = readdirSync(directory).sort()

/** The first with money that a later one has to keep: before it the schema was never in use. */
const firstStage = 4

/** A folder with the migrations of an earlier program. */
const stageOf = (stage: number) =>
  Effect.acquireRelease(
    Effect.sync(() => {
      const folder = mkdtempSync(join(tmpdir(), "migrations-"))
      for (const file of files.slice(0, stage)) {
        copyFileSync(join(directory, file), join(folder, file))
      }
      return folder
    }),
    (folder) => Effect.sync(() => rmSync(folder, { recursive: true }))
  )

const user = UserId.make(randomUUID())
const endpoint = EndpointId.make("whe_1")
const [pending, processing, done] = [randomUUID(), randomUUID(), randomUUID()]
const now = "2026-03-01T12:00:00.000Z"

/** Rows in each state that a running service leaves behind, written by the functions of its time. */
const fill = Effect.fnUntraced(function* (stage: number) {
  const sql = yield* SqlClient
  const run = (statement: string) => sql.unsafe(statement).unprepared
  yield* run(
    `INSERT INTO users (id, email, created_at) VALUES ('${user}', 'a@example.com', '${now}')`
  )
  yield* run(`INSERT INTO wallets (user_id) VALUES ('${user}')`)
  yield* run(
    `SELECT 1 FROM wallet_add('${user}', 'top_up', 50000000, 'top_up:1', NULL, 't', '${now}')`
  )
  yield* run(
    `SELECT 1 FROM wallet_add('${user}', 'adjustment', -1000000, 'adjustment:1', 'n', 't', '${now}')`
  )
  yield* run(`INSERT INTO api_keys (id, user_id, key_hash, preview, name, scopes, created_at)
    VALUES ('key_1', '${user}', '\\x01', 'sk-...abcd', 'key', '{inference}', '${now}')`)
  yield* run(`INSERT INTO webhook_endpoints
    (id, user_id, url, events, enabled, secret, secret_preview, created_at, updated_at)
    VALUES ('${endpoint}', '${user}', 'https://example.com',
      '{task.created,task.succeeded,task.failed,balance.low}', true, '\\x01', 'x', '${now}', '${now}')`)
  const acceptance = (task: string, n: number) => ({
    n,
    task,
    user_id: user,
    api_key: "key_1",
    vendor: "alibaba",
    model: "text-to-image-max",
    action: "generation",
    kind: "images",
    body: { prompt: "x" },
    sandbox: true,
    trace: "t",
    price: "7500000",
    deadline: "2030-01-01T00:00:00Z",
    now,
    event: `evt_${n}`,
    running_max: 0,
    event_body: "\\x7b7d",
    key: `key-${n}`,
    request_hash: "\\x01",
    answer: "{}",
    key_since: now
  })
  const calls = JSON.stringify([pending, processing, done].map(acceptance))
  yield* run(`SELECT 1 FROM task_accept_many('${calls}')`)
  yield* run(
    `UPDATE runs SET owner = 'proc_old', epoch = 1, attempt = 1 WHERE task_id = '${processing}'`
  )
  yield* run(
    `UPDATE tasks SET status = 'processing', started_at = '${now}' WHERE id = '${processing}'`
  )
  yield* run(`INSERT INTO vendor_attempts (task_id, n, vendor, account_id, body_hash, state, handle, started_at)
    VALUES ('${processing}', 1, 'alibaba', 'a', '\\x01', 'submitted', '{"job":"j"}', '${now}')`)
  const ending = { n: 0, task: done, status: "completed", result: ["https://example.com/1"], now }
  const end = {
    ...ending,
    captured: "5000000",
    event: "evt_9",
    event_body: "\\x7b7d",
    throttle: 60
  }
  yield* run(`SELECT 1 FROM task_finish_many('${JSON.stringify([end])}')`)
  yield* run(
    `INSERT INTO processes (id, started_at, heartbeat_at) VALUES ('proc_old', '${now}', '${now}')`
  )
  yield* run(`SELECT 1 FROM delivery_claim('{${endpoint}}', '{2}', 'proc_old', '${now}')`)
  for (const [table, column] of [
    ["events", "created_at"],
    ["deliveries", "created_at"],
    ["delivery_attempts", "started_at"]
  ] as const) {
    const which = stage < 11 ? "" : `'${table}', '${column}', `
    yield* run(`SELECT 1 FROM partitions_keep(${which}'${now}', 1, '2026-02-01')`)
  }
  yield* run(
    `INSERT INTO artifacts VALUES ('art_1', '${user}', '${done}', 'output', 'image/png', 1, '\\x01', '${now}', '${now}')`
  )
  if (stage >= 5) {
    yield* run(`SELECT 1 FROM api_key_admit('\\x01', 60, '${now}')`)
    yield* run(
      `INSERT INTO manage_answers VALUES ('operator', 'k', '\\x01', '${randomUUID()}', NULL, NULL, '${now}')`
    )
  }
  if (stage >= 6) {
    yield* run(`SELECT vendor_turns_lease('a/polls', 1, '1 second', '${now}')`)
    yield* run(`INSERT INTO vendor_faults VALUES ('a', '${now}')`)
  }
  if (stage >= 7) {
    const open = [randomUUID(), randomUUID()].map((id) => ({
      id,
      user,
      key: "key_1",
      amount: "1000000",
      trace: "t",
      call: { key: "key_1", trace: "t", vendor: "openai", model: "m", route: "r", sandbox: false }
    }))
    if (stage < 14) {
      const ends = [{ id: open[0]?.id, captured: "400000", outcome: "settled", status: 200 }]
      yield* run(`SELECT 1 FROM calls_open('${JSON.stringify(open)}', 'proc_old', '${now}')`)
      yield* run(`SELECT 1 FROM calls_close('${JSON.stringify(ends)}', '1 hour', true, '${now}')`)
    } else {
      const column = (values: ReadonlyArray<unknown>) =>
        sql.literal(`'{${values.map((value) => JSON.stringify(value)).join(",")}}'`)
      const write = (ends: ReadonlyArray<{ readonly id: string }>, starts: typeof open) =>
        sql`
        SELECT 1 FROM calls_write(
          ${column(ends.map(({ id }) => id))}, ${column(ends.map(() => user))},
          ${column(ends.map(() => 400_000))}, ${column(ends.map(() => "settled"))},
          ${column(ends.map(() => 200))}, ${column(ends.map(() => null))}, ${column(ends.map(() => null))},
          ${column(starts.map(({ id }) => id))}, ${column(starts.map(() => user))},
          ${column(starts.map(({ key }) => key))}, ${column(starts.map(({ amount }) => amount))},
          ${column(starts.map(({ call }) => JSON.stringify(call)))},
          'proc_old', '1 hour', true, ${now}::timestamptz)`.unprepared
      yield* write([], open)
      yield* write(open.slice(0, 1), [])
    }
  }
})

/** What the newest program does with them. */
const goOn = Effect.fnUntraced(function* (stage: number) {
  assert.strictEqual(yield* breaches, 0)
  assert.strictEqual((yield* finish(TaskId.make(pending), undefined))._tag, "Finished")
  const ended = yield* finish(TaskId.make(processing), 7.5, { epoch: Option.some(1) })
  assert.strictEqual(ended._tag, "Finished")
  assert.strictEqual((yield* finish(TaskId.make(done), 5))._tag, "Fenced")
  const { outcome } = yield* accept(user, 7.5)
  assert.strictEqual(outcome._tag, "Accepted")
  const deliveries = yield* DeliveryStore
  const at = DateTime.makeUnsafe("2026-03-01T12:05:00Z")
  yield* deliveries.requeueLost(at, at, at)
  const wanted = [{ endpointId: endpoint, limit: 100 }]
  const claimed = yield* deliveries.claim({ wanted, owner: "proc_new", now: at })
  assert.lengthOf(claimed, 4, "of the earlier program: three created, one succeeded")
  yield* deliveries.record(
    claimed.map((one) => ({
      claimed: one,
      endedAt: at,
      outcome: mockOutcome(200),
      nextDueAt: Option.none()
    }))
  )
  const sql = yield* SqlClient
  const [calls] = yield* sql`SELECT (SELECT count(*) FROM calls)::int AS receipts,
    (SELECT count(*) FROM holds WHERE call IS NOT NULL)::int AS open`
  assert.deepStrictEqual(calls, stage < 7 ? { receipts: 0, open: 0 } : { receipts: 1, open: 1 })
  const open =
    yield* sql`SELECT status FROM deliveries WHERE created_at = ${now} AND status <> 'succeeded'`
  assert.deepStrictEqual(open, [])
  assert.strictEqual(yield* breaches, 0)
})

describe("a database of an earlier program, with all that a running service leaves in it", () => {
  for (let stage = firstStage; stage < files.length; stage += 1) {
    it.live(`goes on from ${files[stage - 1]}`, () =>
      Effect.gen(function* () {
        const url = Redacted.make((yield* freshDatabase()).href)
        const folder = yield* stageOf(stage)
        yield* Effect.gen(function* () {
          yield* Migrations.migrate({ directory: pathToFileURL(folder) })
          yield* fill(stage)
          assert.lengthOf(yield* Migrations.migrate(), files.length - stage)
          yield* goOn(stage)
        }).pipe(
          Effect.provide(
            Layer.merge(walletStores, DeliveryStoreLive.layer).pipe(
              Layer.provideMerge(layerPostgres({ url }))
            )
          )
        )
      }).pipe(Effect.scoped)
    )
  }
})
