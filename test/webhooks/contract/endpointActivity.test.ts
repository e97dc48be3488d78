import { assert, it } from "@effect/vitest"
import { DateTime, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { EndpointId } from "../../../src/domain/Ids.ts"
import { listScanRowsMax, webhookActivity } from "../../../src/domain/limits/Limits.ts"
import { EndpointStore } from "../../../src/webhooks/EndpointStore.ts"
import { describeMigratedStores } from "../../support/stores.ts"

const endpointId = EndpointId.make("whe_1")
const from = DateTime.makeUnsafe("2026-03-01T12:00:00Z")
const hour = (n: number) => DateTime.toDateUtc(DateTime.add(from, { hours: n }))

/** This many deliveries with this status, a millisecond apart, from the beginning of an hour on. */
const insert = Effect.fnUntraced(function* (
  endpoint: string,
  hours: number,
  status: string,
  count: number
) {
  const sql = yield* SqlClient.SqlClient
  yield* sql`
    INSERT INTO deliveries
      (id, created_at, user_id, endpoint_id, event_id, event_created_at, event_type, status, updated_at)
    SELECT time_sorted_id('whd_', at), at, gen_random_uuid(), ${endpoint}, 'evt_1', at, 'task.succeeded', ${status}, at
    FROM generate_series(1, ${count}::int) n,
      LATERAL (SELECT ${hour(hours)}::timestamptz + (n - 1) * interval '1 millisecond' AS at)`
})

const read = (count = 24, most = 400) =>
  Effect.flatMap(EndpointStore, (store) => store.hours(endpointId, from, count, most))

describeMigratedStores("the activity of an endpoint", (database) => {
  const Live = EndpointStore.layer.pipe(Layer.provideMerge(database))

  it.effect("counts its deliveries by the hour of their creation and their current status", () =>
    Effect.gen(function* () {
      yield* insert("whe_1", -1, "failed", 1)
      yield* insert("whe_1", 0, "succeeded", 3)
      yield* insert("whe_1", 0, "failed", 2)
      yield* insert("whe_1", 0, "skipped", 1)
      yield* insert("whe_1", 12, "pending", 2)
      yield* insert("whe_1", 23, "failed", 1)
      yield* insert("whe_1", 24, "failed", 1)
      yield* insert("whe_2", 0, "failed", 5)
      const hours = yield* read()
      assert.strictEqual(hours.length, 24)
      hours.forEach((it, n) => {
        assert.strictEqual(DateTime.toEpochMillis(it.hour), hour(n).getTime())
      })
      const found = hours.map((it) => [it.succeeded, it.failed, it.waiting, it.hasMore])
      const expected = Array.from({ length: 24 }, () => [0, 0, 0, false])
      expected[0] = [3, 2, 0, false]
      expected[12] = [0, 0, 2, false]
      expected[23] = [0, 1, 0, false]
      assert.deepStrictEqual(found, expected)
    }).pipe(Effect.provide(Live))
  )

  it.effect("counts only the newest deliveries of an hour above the limit", () =>
    Effect.gen(function* () {
      yield* insert("whe_1", 0, "failed", 5)
      assert.deepInclude((yield* read(1, 5))[0], { failed: 5, hasMore: false })
      const sql = yield* SqlClient.SqlClient
      yield* sql`
        UPDATE deliveries SET status = 'succeeded' WHERE id = (SELECT max(id) FROM deliveries)`
      assert.deepInclude((yield* read(1, 4))[0], { succeeded: 1, failed: 3, hasMore: true })
    }).pipe(Effect.provide(Live))
  )

  it.effect("reads no more if others have filled the store, and no more than a list", () =>
    Effect.gen(function* () {
      const { deliveriesPerHourMax, hours } = webhookActivity
      assert.isAtMost(deliveriesPerHourMax * hours, listScanRowsMax)
      const sql = yield* SqlClient.SqlClient
      const blocks = Effect.map(
        sql`
          EXPLAIN (ANALYZE, BUFFERS) SELECT * FROM deliveries_by_hour('whe_1', ${hour(0)}, 2, 50)`,
        (rows) => Number(/shared hit=(\d+)/u.exec(JSON.stringify(rows))?.[1])
      )
      yield* insert("whe_1", 0, "succeeded", 60)
      yield* blocks
      const few = yield* blocks
      assert.isAbove(few, 0)
      for (const n of [0, 1]) yield* insert("whe_2", n, "succeeded", 10_000)
      yield* insert("whe_1", 0, "succeeded", 5000)
      yield* blocks
      assert.isAtMost(yield* blocks, few + 80, "about the 50 counted rows of 25,000")
    }).pipe(Effect.provide(Live))
  )
})
