import { PgClient } from "@effect/sql-pg"
import { assert, describe } from "@effect/vitest"
import { DateTime, Effect, Layer } from "effect"
import { EndpointId, EventId } from "../../../src/domain/Ids.ts"
import type { UserId } from "../../../src/domain/Ids.ts"
import { PartitionStore } from "../../../src/process/retention/PartitionStore.ts"
import { DeliveryStore } from "../../../src/webhooks/DeliveryStore.ts"
import * as DeliveryStoreLive from "../../../src/webhooks/DeliveryStoreLive.ts"
import { EndpointStore } from "../../../src/webhooks/EndpointStore.ts"
import { liveLayer } from "../../support/liveLayer.ts"
import { countSoFar } from "../../support/statistics.ts"
import { singleStores } from "../../support/stores.ts"
import { newWallet, walletStores } from "../../support/wallets.ts"

/** A few queued deliveries cause reads of only a few rows of a long log, whatever was queued before. ADR 0112 */

const days = 4
const perDay = 2000
const endpointsCount = 500
const millisPerDay = 86_400_000
/** Per row found: looked up, changed, and looked up in the other days of a range. */
const readsPerRow = 12

const idOf = (n: number) => EndpointId.make(`whe_${String(n).padStart(4, "0")}`)
const busy = idOf(endpointsCount - 1)

const makeEndpoints = Effect.fnUntraced(function* (user: UserId) {
  const sql = yield* PgClient.PgClient
  const ids = Array.from({ length: endpointsCount }, (_, n) => idOf(n))
  yield* sql`
    INSERT INTO webhook_endpoints
      (id, user_id, url, events, enabled, secret, secret_preview, created_at, updated_at)
    SELECT id, ${user}::uuid, 'https://example.com', '{}', true, 'x', 'x', '2026-01-01', '2026-01-01'
    FROM unnest(${ids}::text[]) AS id`
})

/** Deliveries of the last days, all queued for one endpoint. */
const makeBacklog = Effect.fnUntraced(function* (user: UserId, owner: string | null) {
  const sql = yield* PgClient.PgClient
  const midnight =
    Math.floor(DateTime.toEpochMillis(yield* DateTime.now) / millisPerDay) * millisPerDay
  for (let day = 1; day <= days; day += 1) {
    const since = new Date(midnight - day * millisPerDay)
    for (const table of ["deliveries", "events", "delivery_attempts"]) {
      const column = table === "delivery_attempts" ? "started_at" : "created_at"
      yield* sql`SELECT day_partition_create(${table}, ${column}, ${since}::timestamptz::date)`
    }
    yield* sql`
      WITH made AS (
        INSERT INTO deliveries (id, created_at, user_id, endpoint_id, event_id, event_created_at, event_type, status,
          updated_at)
        SELECT time_sorted_id('whd_', at), at, ${user}, ${busy}, 'evt_' || n, at, 'task.created', 'pending', at
        FROM (
          SELECT n, ${since}::timestamptz + n * interval '1 second' AS at FROM generate_series(1, ${perDay}::int) n
        ) s
        RETURNING id, created_at, endpoint_id
      )
      INSERT INTO delivery_queue (id, created_at, endpoint_id, due_at, owner, claimed_at)
      SELECT id, created_at, endpoint_id, created_at, ${owner}::text,
        CASE WHEN ${owner}::text IS NOT NULL THEN created_at END FROM made`
  }
  yield* sql`ANALYZE`.unprepared
})

/** Leaves this many of the oldest, without updating the statistics. */
const leave = (count: number) =>
  Effect.flatMap(
    PgClient.PgClient,
    (sql) => sql`
      DELETE FROM delivery_queue WHERE id NOT IN (SELECT id FROM delivery_queue ORDER BY id LIMIT ${count})`
  )

/** Rows and index entries of the log, its queue and the endpoints that this connection has read. */
const readSoFar = Effect.gen(function* () {
  const sql = yield* PgClient.PgClient
  yield* countSoFar
  const rows = yield* sql<{ name: string; n: number }>`
    SELECT CASE WHEN relname LIKE 'deliver%_2%' OR relname LIKE '%_default' THEN 'log' ELSE relname::text END AS name,
      sum(seq_tup_read + coalesce(idx_tup_fetch, 0))::int AS n
    FROM pg_stat_user_tables
    WHERE relname ~ '^(deliveries|delivery_attempts)_' OR relname IN ('delivery_queue', 'webhook_endpoints')
    GROUP BY 1`
  return new Map(rows.map(({ n, name }) => [name, n]))
})

const readBy = Effect.fnUntraced(function* <A, E, R>(work: Effect.Effect<A, E, R>) {
  const before = yield* readSoFar
  yield* work
  const after = yield* readSoFar
  return (name: string) => (after.get(name) ?? 0) - (before.get(name) ?? 0)
})

const statuses = Effect.flatMap(
  PgClient.PgClient,
  (sql) =>
    sql`SELECT status, count(*)::int AS n FROM deliveries WHERE status <> 'pending' GROUP BY 1`
)

/** On one store: both are Postgres 18 with the same planner settings, as queryPlans.test.ts shows. */
describe("a queue that was long when its statistics were taken", () => {
  const stores = Layer.mergeAll(
    walletStores,
    DeliveryStoreLive.layer,
    EndpointStore.layer,
    PartitionStore.layer
  )
  const everything = Layer.provideMerge(stores, singleStores.postgres)
  /** Each has its own store. */
  const test = (
    sentence: string,
    run: () => Effect.Effect<void, unknown, Layer.Success<typeof everything>>
  ) => liveLayer(everything, "120 seconds")((it) => it.effect(sentence, run))

  test("deletes a row older than the log by its key", () =>
    Effect.gen(function* () {
      const sql = yield* PgClient.PgClient
      const user = yield* newWallet(0)
      yield* makeEndpoints(user)
      yield* makeBacklog(user, null)
      yield* leave(3)
      const now = yield* DateTime.now
      const keepSince = DateTime.subtract(now, { days: days - 1 })
      const orphan = yield* sql<{ id: string }>`
          DELETE FROM deliveries WHERE id = (SELECT min(id) FROM delivery_queue) RETURNING id`
      const read = yield* readBy(sql`SELECT delivery_queue_prune(${DateTime.toDateUtc(keepSince)})`)
      assert.isAtMost(read("log"), 3 * readsPerRow)
      assert.isAtMost(read("delivery_queue"), 3 * readsPerRow)
      const left = yield* sql<{ id: string }>`SELECT id FROM delivery_queue`
      assert.lengthOf(left, 2)
      assert.notInclude(
        left.map(({ id }) => id),
        orphan[0]!.id
      )
    }))

  test("finds lost attempts and changes their deliveries by key", () =>
    Effect.gen(function* () {
      const store = yield* DeliveryStore
      const user = yield* newWallet(0)
      yield* makeEndpoints(user)
      yield* makeBacklog(user, "prc_dead")
      yield* leave(2)
      const now = yield* DateTime.now
      const read = yield* readBy(
        Effect.tap(store.requeueLost(now, now, now, 5000), (lost) =>
          Effect.sync(() => {
            assert.deepStrictEqual(lost, { rescued: 2, endpoints: [busy] })
          })
        )
      )
      for (const table of ["log", "delivery_queue", "webhook_endpoints"]) {
        assert.isAtMost(read(table), 2 * readsPerRow, table)
      }
    }))

  test("skips the deliveries of a disabled endpoint by key", () =>
    Effect.gen(function* () {
      const store = yield* DeliveryStore
      const endpoints = yield* EndpointStore
      const user = yield* newWallet(0)
      yield* makeEndpoints(user)
      yield* makeBacklog(user, null)
      yield* leave(2)
      const now = yield* DateTime.now
      const disabled = endpoints.update(user, busy, { enabled: false }, now)
      const read = yield* readBy(disabled)
      assert.isAtMost(read("log"), 2 * readsPerRow)
      assert.deepStrictEqual(yield* statuses, [{ status: "skipped", n: 2 }])
      // An event published in the meantime
      const event = {
        id: EventId.make("evt_late"),
        body: new Uint8Array(2),
        type: "task.created"
      }
      yield* store.publishTo(user, busy, event, now)
      const again = yield* readBy(store.skipDisabled(DateTime.subtract(now, { minutes: 1 }), now))
      assert.isAtMost(again("log"), readsPerRow)
      assert.deepStrictEqual(yield* statuses, [{ status: "skipped", n: 3 }])
    }))

  test("skips the deliveries of a deleted user by key", () =>
    Effect.gen(function* () {
      const sql = yield* PgClient.PgClient
      const user = yield* newWallet(0)
      yield* makeEndpoints(user)
      yield* makeBacklog(user, null)
      yield* leave(2)
      const now = DateTime.toDateUtc(yield* DateTime.now)
      const read = yield* readBy(sql`SELECT user_access_end(${user}, ${now})`)
      assert.isAtMost(read("log"), 2 * readsPerRow)
      assert.deepStrictEqual(yield* statuses, [{ status: "skipped", n: 2 }])
    }))

  test("drops days together with their queued deliveries, and keeps the others", () =>
    Effect.gen(function* () {
      const sql = yield* PgClient.PgClient
      const partitions = yield* PartitionStore
      const user = yield* newWallet(0)
      yield* makeBacklog(user, null)
      const now = yield* DateTime.now
      const { dropped } = yield* partitions.maintain(now, 1, DateTime.subtract(now, { days: 2 }))
      // Two of four days, for deliveries, events and attempts
      assert.strictEqual(dropped, 6)
      const [left] = yield* sql<{ n: number }>`SELECT count(*)::int AS n FROM delivery_queue`
      assert.strictEqual(left!.n, 2 * perDay)
      const again = yield* partitions.maintain(now, 1, DateTime.subtract(now, { days: 2 }))
      assert.deepStrictEqual(again, { made: 0, dropped: 0 })
    }))
})
