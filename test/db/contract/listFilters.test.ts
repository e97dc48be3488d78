import { PgClient } from "@effect/sql-pg"
import { assert, describe } from "@effect/vitest"
import { DateTime, Effect, Layer, Option, Tracer } from "effect"
import { ApiKeyId, AuditId, DeliveryId, makeTaskId, TaskId } from "../../../src/domain/Ids.ts"
import type { UserId } from "../../../src/domain/Ids.ts"
import { listScanRowsMax } from "../../../src/domain/limits/Limits.ts"
import type { CallFilter } from "../../../src/passthrough/CallSearchStore.ts"
import { CallStore } from "../../../src/passthrough/CallStore.ts"
import { AuditStore } from "../../../src/process/audit/AuditStore.ts"
import { TaskHistoryStore } from "../../../src/tasks/history/TaskHistoryStore.ts"
import type { TaskFilter } from "../../../src/tasks/history/TaskHistoryStore.ts"
import type { EntryPage } from "../../../src/wallet/WalletEntryStore.ts"
import { WalletStore } from "../../../src/wallet/WalletStore.ts"
import { DeliveryLogStore } from "../../../src/webhooks/DeliveryLogStore.ts"
import type { DeliveryFilter } from "../../../src/webhooks/DeliverySearchStore.ts"
import { liveLayer } from "../../support/liveLayer.ts"
import { countSoFar } from "../../support/statistics.ts"
import { singleStores } from "../../support/stores.ts"
import { credits, newWallet, walletStores } from "../../support/wallets.ts"

/** docs/reference/http.md#lists, ADR 0165 */

const begin = Date.parse("2026-11-20T00:00:00Z")
const at = (n: number) => DateTime.makeUnsafe(begin + n * 1000)
const trace = (n: number) => n.toString(16).padStart(32, "0")
const keyOf = (n: number) => ApiKeyId.make(`key_${n}`)
const count = 25_000

/**
 * Tasks of one user, one per second: task n has the trace n; every 5000th has another key and failed, every 2500th has
 * another model; only task 10 has a high cost.
 */
const makeTasks = Effect.fnUntraced(function* (user: UserId) {
  const sql = yield* PgClient.PgClient
  const ids = Array.from({ length: count }, (_, n) => makeTaskId(begin + n * 1000))
  yield* sql`
    INSERT INTO tasks (id, user_id, api_key_id, vendor, model, action, result_kind, status, body, sandbox, price,
      captured, error, trace_id, created_at, updated_at)
    SELECT x.id, ${user}, CASE WHEN n % 5000 = 0 THEN 'key_1' ELSE 'key_0' END, 'alibaba',
      CASE WHEN n % 2500 = 0 THEN 'rare' ELSE 'common' END, 'generation', 'images',
      CASE WHEN n % 5000 = 0 THEN 'failed' ELSE 'completed' END, '{}', true, 1000000000,
      CASE WHEN n % 5000 = 0 THEN 0 WHEN n = 10 THEN 900000000 ELSE 1000000 END,
      CASE WHEN n % 5000 = 0 THEN '{"code": 4004, "title": "", "detail": ""}'::jsonb END,
      lpad(to_hex(n), 32, '0'), ${new Date(begin)}::timestamptz + n * interval '1 second',
      ${new Date(begin)}::timestamptz + n * interval '1 second'
    FROM (SELECT id, (i - 1)::int AS n FROM unnest(${ids}::uuid[]) WITH ORDINALITY AS u(id, i)) x`
  yield* sql`ANALYZE tasks`
  return ids
})

const makeCalls = Effect.fnUntraced(function* (user: UserId, ids: ReadonlyArray<string>) {
  const sql = yield* PgClient.PgClient
  yield* sql`
    INSERT INTO calls (id, user_id, api_key_id, vendor, model, route, outcome, held, captured, sandbox, trace_id,
      created_at, ended_at)
    SELECT x.id, ${user}, CASE WHEN n % 5000 = 0 THEN 'key_1' ELSE 'key_0' END, 'openai', 'gpt-4o', 'POST /v1',
      CASE WHEN n % 5000 = 0 THEN 'released' ELSE 'settled' END, 1000000000,
      CASE WHEN n = 10 THEN 900000000 ELSE 1000000 END, true,
      lpad(to_hex(n), 32, '0'), ${new Date(begin)}::timestamptz + n * interval '1 second',
      ${new Date(begin)}::timestamptz + n * interval '1 second'
    FROM (SELECT id, (i - 1)::int AS n FROM unnest(${[...ids]}::uuid[]) WITH ORDINALITY AS u(id, i)) x`
  yield* sql`ANALYZE calls`
})

/** Blocks and rows of a table and its indexes that this connection has read. */
const rowsRead = Effect.fnUntraced(function* (table: string) {
  const sql = yield* PgClient.PgClient
  yield* countSoFar
  const [row] = yield* sql<{ n: number }>`
    SELECT (coalesce(sum(seq_tup_read), 0) + coalesce(sum(idx_tup_fetch), 0))::int AS n
    FROM pg_stat_user_tables WHERE relname = ${table} OR relname LIKE ${`${table}_%`}`
  return row!.n
})

const costOf = Effect.fnUntraced(function* <A, E, R>(table: string, work: Effect.Effect<A, E, R>) {
  const before = yield* rowsRead(table)
  const result = yield* work
  return { result, rows: (yield* rowsRead(table)) - before }
})

/** The statements sent by this work. */
const statementsOf = Effect.fnUntraced(function* <A, E, R>(work: Effect.Effect<A, E, R>) {
  let statements = 0
  const tracer = Tracer.make({
    span: (options) => {
      const span = new Tracer.NativeSpan(options)
      span.attribute = (key) => {
        if (key === "db.query.text") statements += 1
      }
      return span
    }
  })
  yield* Effect.provideService(work, Tracer.Tracer, tracer)
  return statements
})

/** Reads page after page. */
const walk = Effect.fnUntraced(function* <A, E, R>(
  keyOf: (row: A) => string,
  limit: number,
  page: (
    before: string | undefined
  ) => Effect.Effect<{ readonly rows: ReadonlyArray<A>; readonly end: string | null }, E, R>
) {
  const found: Array<A> = []
  let before: string | undefined
  for (let pages = 1; ; pages += 1) {
    const { end, rows } = yield* page(before)
    found.push(...rows)
    const next = rows.length >= limit ? keyOf(rows.at(-1)!) : end
    if (next === null) return { found, pages }
    before = next
  }
})

/** On one store, because both make the same plans: `taskListPlans.test.ts`. */
describe("filtered lists", () => {
  const services = Layer.mergeAll(
    walletStores,
    AuditStore.layer,
    TaskHistoryStore.layer,
    DeliveryLogStore.layer
  )
  liveLayer(
    Layer.provideMerge(services, singleStores.postgres),
    "120 seconds"
  )((it) => {
    it.effect(
      "read tasks by key, model, failure, trace and time with an index",
      () =>
        Effect.gen(function* () {
          const store = yield* TaskHistoryStore
          const user = yield* newWallet(0)
          const other = yield* newWallet(0)
          const ids = yield* makeTasks(user)
          const indexed: ReadonlyArray<readonly [Partial<TaskFilter>, ReadonlyArray<number>]> = [
            [{ apiKeyId: keyOf(1) }, [20_000, 15_000, 10_000, 5000, 0]],
            [{ model: "rare", until: at(7000) }, [5000, 2500, 0]],
            [{ status: "failed" }, [20_000, 15_000, 10_000, 5000, 0]],
            [{ status: "failed", since: at(5000), until: at(15_000) }, [10_000, 5000]],
            [{ traceId: trace(77) }, [77]],
            [{ traceId: trace(77), model: "rare" }, []],
            [{ since: at(100), until: at(102) }, [101, 100]],
            [{ apiKeyId: keyOf(1), maxCost: credits(0), before: ids[5000]! }, [0]],
            [{ minCost: credits(900), until: at(20) }, [10]]
          ]
          for (const [filter, expected] of indexed) {
            const { result, rows } = yield* costOf(
              "tasks",
              store.search(user, { ...filter, limit: 21 })
            )
            const label = JSON.stringify(filter, (_, v) => (typeof v === "bigint" ? String(v) : v))
            assert.deepStrictEqual(
              result.rows.map(({ id }) => id),
              expected.map((n) => ids[n]!),
              label
            )
            assert.isNull(result.end, label)
            assert.isBelow(rows, 50, label)
            assert.isEmpty((yield* store.search(other, { ...filter, limit: 21 })).rows, label)
          }
          // One snapshot, so that rows written meanwhile do not move the end of a page
          const missing = store.search(user, { vendor: "nobody", limit: 21 })
          assert.strictEqual(yield* statementsOf(missing), 1)
          assert.strictEqual((yield* missing).end, ids[count - listScanRowsMax])
          // More than a page may read: it ends at another user's task
          assert.deepStrictEqual(yield* store.search(other, { apiKeyId: keyOf(0), limit: 21 }), {
            rows: [],
            end: null
          })
        }),
      120_000
    )

    it.effect(
      "without an index read a bounded number of rows for each page, and continue where it ended",
      () =>
        Effect.gen(function* () {
          const tasks = yield* TaskHistoryStore
          const calls = yield* CallStore
          const user = yield* newWallet(0)
          const ids = yield* makeTasks(user)
          yield* makeCalls(user, ids)
          const first = yield* costOf(
            "tasks",
            tasks.search(user, { minCost: credits(900), limit: 21 })
          )
          assert.isEmpty(first.result.rows)
          assert.strictEqual(first.result.end, ids[count - listScanRowsMax])
          assert.isAtMost(first.rows, 2 * listScanRowsMax + 50)
          const rare = yield* walk<{ readonly id: string }, unknown, never>(
            ({ id }) => id,
            21,
            (before) =>
              tasks.search(user, {
                minCost: credits(900),
                limit: 21,
                before: before === undefined ? undefined : TaskId.make(before)
              })
          )
          assert.deepStrictEqual([rare.found.map(({ id }) => id), rare.pages], [[ids[10]!], 3])
          const filters: ReadonlyArray<readonly [Partial<CallFilter>, ReadonlyArray<number>]> = [
            [{ minCost: credits(900) }, [10]],
            [{ outcome: "released", vendor: "openai" }, [20_000, 15_000, 10_000, 5000, 0]],
            [{ apiKeyId: "key_1", model: "gpt-4o", until: at(15_000) }, [10_000, 5000, 0]],
            [{ traceId: trace(77) }, [77]],
            [{ traceId: trace(77), since: at(78) }, []],
            [{ since: at(100), until: at(102) }, [101, 100]],
            [{ vendor: "google" }, []]
          ]
          for (const [filter, expected] of filters) {
            const { found } = yield* walk<{ readonly id: string }, unknown, never>(
              ({ id }) => id,
              2,
              (before) => calls.search(user, { ...filter, before, limit: 2 })
            )
            assert.deepStrictEqual(
              found.map(({ id }) => id),
              expected.map((n) => ids[n]!)
            )
          }
          const narrow = yield* costOf(
            "calls",
            calls.search(user, { since: at(100), until: at(102), outcome: "released", limit: 21 })
          )
          assert.isBelow(narrow.rows, 400)
          const pages = yield* walk<{ readonly id: string }, unknown, never>(
            ({ id }) => id,
            1000,
            (before) => calls.search(user, { before, limit: 1000 })
          )
          assert.deepStrictEqual(
            pages.found.map(({ id }) => id),
            ids.toReversed() as ReadonlyArray<string>
          )
        }),
      120_000
    )

    it.effect("read the ledger by kind, time, trace and amount", () =>
      Effect.gen(function* () {
        const sql = yield* PgClient.PgClient
        const wallets = yield* WalletStore
        const user = yield* newWallet(0)
        // Entry n of 30,000, one per second: every 10,000th is a top-up, the others are releases of nothing
        yield* sql`
          INSERT INTO wallet_entries (user_id, seq, kind, amount, settled_after, held_after, operation_id,
            subject_id, trace_id, created_at, state_after, threshold_after)
          SELECT ${user}, n, CASE WHEN n % 10000 = 0 THEN 'top_up' ELSE 'release' END,
            CASE WHEN n % 10000 = 0 THEN 5000000 ELSE 0 END, 5000000 * (n / 10000), 0,
            CASE WHEN n % 10000 = 0 THEN ${`${user}:`}::text || n ELSE 'release:' || i END,
            CASE WHEN n % 10000 <> 0 THEN i END, lpad(to_hex(n), 32, '0'),
            ${new Date(begin)}::timestamptz + n * interval '1 second',
            CASE WHEN n % 10000 = 0 THEN 'NORMAL' END, CASE WHEN n % 10000 = 0 THEN 0 END
          FROM (SELECT n, gen_random_uuid() AS i FROM generate_series(1, 30000) n) x`
        yield* sql`UPDATE wallets SET settled = 15000000, entry_count = 30000 WHERE user_id = ${user}`
        yield* sql`ANALYZE wallet_entries`
        const expected: ReadonlyArray<
          readonly [Partial<EntryPage>, ReadonlyArray<number>, rows: number]
        > = [
          [{ kind: "top_up" }, [30_000, 20_000, 10_000], 50],
          [{ since: at(15_000), until: at(15_003) }, [15_002, 15_001, 15_000], 400],
          [{ since: at(29_999) }, [30_000, 29_999], 400],
          [{ until: at(2) }, [1], 400],
          [{ traceId: trace(77) }, [77], 25_000],
          [{ minAmount: credits(1), maxAmount: credits(5) }, [30_000, 20_000, 10_000], 25_000],
          [{ since: at(40_000) }, [], 50]
        ]
        for (const [filter, numbers, rows] of expected) {
          const first = yield* costOf(
            "wallet_entries",
            wallets.search(user, { ...filter, before: Option.none(), limit: 21 })
          )
          const { found } = yield* walk<{ readonly seq: bigint }, unknown, never>(
            ({ seq }) => String(seq),
            2,
            (before) =>
              wallets.search(user, {
                ...filter,
                before: Option.map(Option.fromUndefinedOr(before), BigInt),
                limit: 2
              })
          )
          assert.deepStrictEqual(
            found.map(({ seq }) => Number(seq)),
            [...numbers]
          )
          assert.isBelow(first.rows, rows)
        }
      })
    )

    it.effect("read the audit log by type, actor and resource", () =>
      Effect.gen(function* () {
        const sql = yield* PgClient.PgClient
        const audit = yield* AuditStore
        const id = (n: number) =>
          AuditId.make(`aud_${(begin + n * 1000).toString(16).padStart(12, "0")}${"0".repeat(20)}`)
        const numbers = Array.from({ length: 12_000 }, (_, n) => n)
        yield* sql`
          INSERT INTO audit_entries (id, created_at, type, actor_type, actor_id, resource_id, changes)
          SELECT id, ${new Date(begin)}::timestamptz + (i - 1) * interval '1 second',
            CASE WHEN i = 1 THEN 'topUp' ELSE 'signIn' END, 'session', CASE WHEN i = 2 THEN 'one' ELSE 'other' END,
            CASE WHEN i = 3 THEN 'one' ELSE 'other' END, '{}'
          FROM unnest(${numbers.map(id)}::text[]) WITH ORDINALITY AS u(id, i)`
        yield* sql`ANALYZE audit_entries`
        for (const [filter, found] of [
          [{ type: "topUp" }, 0],
          [{ actorId: "one" }, 1],
          [{ resourceId: "one" }, 2]
        ] as const) {
          const list = (before: string | undefined) =>
            audit.list({
              ...filter,
              before: Option.map(Option.fromUndefinedOr(before), (it) => AuditId.make(it)),
              limit: 21
            })
          const first = yield* costOf("audit_entries", list(undefined))
          assert.isEmpty(first.result.rows)
          assert.isBelow(first.rows, 2.5 * listScanRowsMax)
          const all = yield* walk((row) => row.id, 21, list)
          assert.deepStrictEqual([all.found.map((row) => row.id), all.pages], [[id(found)], 2])
        }
      })
    )

    it.effect("read deliveries by endpoint, task, status, type, trace and time", () =>
      Effect.gen(function* () {
        const sql = yield* PgClient.PgClient
        const log = yield* DeliveryLogStore
        const user = yield* newWallet(0)
        const task = makeTaskId(begin)
        const id = (n: number) =>
          `whd_${(begin + n * 1000).toString(16).padStart(12, "0")}${"0".repeat(20)}`
        const numbers = Array.from({ length: 2000 }, (_, n) => n)
        yield* sql`
          INSERT INTO webhook_endpoints
            (id, user_id, url, events, enabled, secret, secret_preview, created_at, updated_at)
          SELECT e, ${user}, 'https://example.com', '{}', true, 'x', 'x', now(), now()
          FROM unnest(ARRAY['whe_a', 'whe_b']) e`
        yield* sql`
          WITH x AS (
            SELECT id, (i - 1)::int AS n, ${new Date(begin)}::timestamptz + (i - 1) * interval '1 second' AS at
            FROM unnest(${numbers.map(id)}::text[]) WITH ORDINALITY AS u(id, i)
          ), made AS (
            INSERT INTO events (id, created_at, user_id, type, body, trace_id)
            SELECT 'evt_' || n, at, ${user}, 'task.created', 'x', lpad(to_hex(n), 32, '0') FROM x
          )
          INSERT INTO deliveries (id, created_at, user_id, endpoint_id, event_id, event_created_at, event_type,
            task_id, status, updated_at)
          SELECT id, at, ${user}, CASE WHEN n % 1000 = 0 THEN 'whe_b' ELSE 'whe_a' END, 'evt_' || n, at,
            CASE WHEN n % 500 = 0 THEN 'task.failed' ELSE 'task.created' END,
            CASE WHEN n = 3 THEN ${task}::uuid END, CASE WHEN n = 4 THEN 'failed' ELSE 'succeeded' END, at
          FROM x`
        const expected: ReadonlyArray<readonly [DeliveryFilter, ReadonlyArray<number>]> = [
          [{ endpointId: "whe_b" as never }, [1000, 0]],
          [{ taskId: task }, [3]],
          [{ status: "failed" }, [4]],
          [{ type: "task.failed", until: at(600) }, [500, 0]],
          [{ traceId: trace(77) }, [77]],
          [{ since: at(1998) }, [1999, 1998]],
          [{ since: at(5), until: at(7) }, [6, 5]]
        ]
        for (const [filter, found] of expected) {
          const { rows } = yield* log.search(user, filter, { before: Option.none(), limit: 21 })
          assert.deepStrictEqual(
            rows.map((row) => row.id),
            found.map((n) => DeliveryId.make(id(n)))
          )
        }
      })
    )
  })
})
