import { PgClient } from "@effect/sql-pg"
import { assert, describe } from "@effect/vitest"
import { DateTime, Effect, Layer } from "effect"
import type { DeliveryId, EndpointId, UserId } from "../../../src/domain/Ids.ts"
import { listScanRowsMax } from "../../../src/domain/limits/Limits.ts"
import { DeliveryLogStore } from "../../../src/webhooks/DeliveryLogStore.ts"
import type { RedeliveryFilter } from "../../../src/webhooks/DeliveryLogStore.ts"
import { liveLayer } from "../../support/liveLayer.ts"
import { countSoFar } from "../../support/statistics.ts"
import { singleStores } from "../../support/stores.ts"
import { newWallet, walletStores } from "../../support/wallets.ts"

/** docs/reference/webhooks.md#redelivery, ADR 0165 */

const begin = Date.parse("2026-11-20T00:00:00Z")
const at = (n: number) => DateTime.makeUnsafe(begin + n * 1000)
const idOf = (n: number) =>
  `whd_${(begin + n * 1000).toString(16).padStart(12, "0")}${"0".repeat(20)}` as DeliveryId
const count = 25_000
const failed = [4, 12_345, 24_999]

/** One delivery per second, three of which failed. */
const makeDeliveries = Effect.fnUntraced(function* (user: UserId) {
  const sql = yield* PgClient.PgClient
  const ids = Array.from({ length: count }, (_, n) => idOf(n))
  yield* sql`
    INSERT INTO webhook_endpoints (id, user_id, url, events, enabled, secret, secret_preview, created_at, updated_at)
    VALUES ('whe_a', ${user}, 'https://example.com', '{}', true, 'x', 'x', now(), now())`
  yield* sql`
    INSERT INTO deliveries (id, created_at, user_id, endpoint_id, event_id, event_created_at, event_type, status,
      updated_at)
    SELECT id, at, ${user}, 'whe_a', 'evt_' || n, at, 'task.created',
      CASE WHEN n = ANY (${failed}::int[]) THEN 'failed' ELSE 'succeeded' END, at
    FROM (
      SELECT id, (i - 1)::int AS n, ${new Date(begin)}::timestamptz + (i - 1) * interval '1 second' AS at
      FROM unnest(${ids}::text[]) WITH ORDINALITY AS u(id, i)
    ) x`
  yield* sql`ANALYZE deliveries`
})

/** Rows of deliveries that this connection has read. */
const rowsRead = Effect.gen(function* () {
  const sql = yield* PgClient.PgClient
  yield* countSoFar
  const [row] = yield* sql<{ n: number }>`
    SELECT (coalesce(sum(seq_tup_read), 0) + coalesce(sum(idx_tup_fetch), 0))::int AS n
    FROM pg_stat_user_tables WHERE relname LIKE 'deliveries%'`
  return row!.n
})

const everything: RedeliveryFilter = {
  endpointId: undefined,
  statuses: ["failed", "skipped"],
  type: undefined,
  since: undefined,
  until: undefined,
  after: undefined
}

/** Every window of a filter: the matches, and the most rows that a single window has read. */
const windowsOf = Effect.fnUntraced(function* (user: UserId, filter: RedeliveryFilter) {
  const log = yield* DeliveryLogStore
  const found: Array<DeliveryId> = []
  let { after } = filter
  let most = 0
  for (let windows = 1; ; windows += 1) {
    const before = yield* rowsRead
    const { ids, scanEnd } = yield* log.matching(user, { ...filter, after }, 1001)
    most = Math.max(most, (yield* rowsRead) - before)
    found.push(...ids)
    if (scanEnd === null) return { found, most, windows }
    after = scanEnd
  }
})

/** On one store: both are Postgres 18 with the same planner settings, as queryPlans.test.ts shows. */
describe("deliveries to send again", () => {
  const services = Layer.mergeAll(walletStores, DeliveryLogStore.layer)
  liveLayer(
    Layer.provideMerge(services, singleStores.postgres),
    "120 seconds"
  )((it) => {
    it.effect("are found in windows, however few match the filter", () =>
      Effect.gen(function* () {
        const user = yield* newWallet(0)
        const other = yield* newWallet(0)
        yield* makeDeliveries(user)
        const endpointId = "whe_a" as EndpointId
        for (const [filter, numbers, windows] of [
          [{}, failed, 3],
          [{ endpointId }, failed, 3],
          [{ endpointId, since: at(12_000) }, failed.slice(1), 2],
          [{ since: at(5), until: at(12_346) }, [12_345], 2],
          [{ after: idOf(12_345) }, [24_999], 2],
          [{ type: "task.failed" }, [], 3],
          [{ endpointId, since: at(count) }, [], 1]
        ] as const) {
          const result = yield* windowsOf(user, { ...everything, ...filter })
          const text = JSON.stringify(filter)
          assert.deepStrictEqual(result.found, numbers.map(idOf), text)
          assert.strictEqual(result.windows, windows, text)
          assert.isAtMost(result.most, listScanRowsMax + 100, text)
        }
        // Nothing of other users is found or read
        for (const filter of [{}, { endpointId }]) {
          const foreign = yield* windowsOf(other, { ...everything, ...filter })
          assert.deepInclude(foreign, { found: [], windows: 1 })
          assert.isAtMost(foreign.most, 100)
        }
      })
    )
  })
})
