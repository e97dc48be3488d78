import { PgClient } from "@effect/sql-pg"
import { assert, describe } from "@effect/vitest"
import { DateTime, Effect, Layer, Option } from "effect"
import { EventId, makeCallId, makeTaskId } from "../../../src/domain/Ids.ts"
import { CallStore } from "../../../src/passthrough/CallStore.ts"
import { DeliveryLogStore } from "../../../src/webhooks/DeliveryLogStore.ts"
import { DeliveryStore } from "../../../src/webhooks/DeliveryStore.ts"
import * as DeliveryStoreLive from "../../../src/webhooks/DeliveryStoreLive.ts"
import { mockOutcome } from "../../../src/webhooks/WebhookSender.ts"
import { liveLayer } from "../../support/liveLayer.ts"
import { countSoFar } from "../../support/statistics.ts"
import { singleStores } from "../../support/stores.ts"
import {
  accept,
  callEnd,
  callStart,
  finish,
  newCaller,
  newEvent,
  subscribe,
  walletStores,
  writeCalls
} from "../../support/wallets.ts"

const keptDays = 30
/** Yesterday, today and the default partition, for each table that a statement reads. */
const daysRead = 3

/** Scans of day partitions by statements of this connection, and rows read by sequential scans. */
const scans = Effect.gen(function* () {
  const sql = yield* PgClient.PgClient
  yield* countSoFar
  const [row] = yield* sql<{ scans: number; rows: number }>`
    SELECT sum(seq_scan + coalesce(idx_scan, 0))::int AS scans, sum(seq_tup_read)::int AS rows
    FROM pg_stat_user_tables WHERE relname ~ '^(deliveries|events|delivery_attempts|calls)_'`
  return row!
})

const counted = Effect.fnUntraced(function* <A, E, R>(read: Effect.Effect<A, E, R>) {
  // Plans are cached from the sixth execution on
  for (let n = 0; n < 7; n += 1) yield* read
  const before = yield* scans
  const result = yield* read
  const after = yield* scans
  return { result, scans: after.scans - before.scans, rows: after.rows - before.rows }
})

/** A store with a month of data: a partition for each day. */
const keepMonth = Effect.gen(function* () {
  const sql = yield* PgClient.PgClient
  const now = DateTime.toDateUtc(yield* DateTime.now)
  for (const [table, column] of [
    ["events", "created_at"],
    ["deliveries", "created_at"],
    ["delivery_attempts", "started_at"],
    ["calls", "created_at"]
  ] as const) {
    yield* sql`
      SELECT day_partition_create(${table}, ${column}, (${now}::timestamptz AT TIME ZONE 'UTC')::date - n)
      FROM generate_series(-7, ${keptDays}::int) n`
  }
})

/** On one store: both are Postgres 18 with the same planner settings, as queryPlans.test.ts shows. */
describe("day partitions", () => {
  const stores = Layer.mergeAll(walletStores, DeliveryStoreLive.layer, DeliveryLogStore.layer)
  liveLayer(Layer.provideMerge(stores, singleStores.postgres))((it) => {
    it.effect(
      "are read for only a few days by a page or a task's deliveries, however many are kept",
      () =>
        Effect.gen(function* () {
          const sql = yield* PgClient.PgClient
          const log = yield* DeliveryLogStore
          const deliveries = yield* DeliveryStore
          const calls = yield* CallStore
          yield* keepMonth
          const userId = yield* newCaller(100_000)
          yield* subscribe(userId, ["task.created", "task.succeeded"])
          const millis = DateTime.toEpochMillis(yield* DateTime.now)
          const taskIds = Array.from({ length: 30 }, () => makeTaskId(millis))
          for (const taskId of taskIds) {
            yield* accept(userId, 1, { taskId })
            yield* finish(taskId, 1)
          }
          const now = yield* DateTime.now
          const { endpoints } = yield* deliveries.due(Option.none(), now)
          const wanted = endpoints.map((endpointId) => ({ endpointId, limit: 100 }))
          const claimed = yield* deliveries.claim({ wanted, owner: "prc_1", now, claimedAt: now })
          assert.lengthOf(claimed, 60)
          yield* deliveries.record(
            claimed.map((one) => ({
              claimed: one,
              endedAt: now,
              outcome: mockOutcome(200),
              nextDueAt: Option.none()
            }))
          )
          const starts = taskIds.map(() => callStart(userId, 1, makeCallId(millis)))
          yield* writeCalls({ starts })
          yield* writeCalls({ ends: starts.map((start) => callEnd(start, 1)) })
          yield* sql`ANALYZE`.unprepared

          const ofTask = yield* counted(log.ofTask(taskIds[0]!))
          assert.deepStrictEqual(
            ofTask.result.map(({ eventType, seq, status }) => [eventType, status, seq]),
            [
              ["task.created", "succeeded", 1],
              ["task.succeeded", "succeeded", 1]
            ]
          )
          // The deliveries, and for each of them its event and its attempts
          assert.isAtMost(ofTask.scans, 5 * daysRead, "deliveries of a task")
          const page = { before: Option.none(), limit: 20 }
          const listed = yield* counted(log.search(userId, { taskId: taskIds[0]! }, page))
          assert.lengthOf(listed.result.rows, 2)
          assert.isAtMost(listed.scans, 2 * daysRead, "the list of a task's deliveries")
          const [endpointId] = endpoints
          const pages = {
            deliveries: yield* counted(log.search(userId, {}, page)),
            "of an endpoint": yield* counted(log.search(userId, { endpointId }, page)),
            calls: yield* counted(calls.search(userId, { limit: 20 }))
          }
          for (const [what, read] of Object.entries(pages)) {
            assert.lengthOf(read.result.rows, 20)
            // Including the partitions of the next week
            assert.isAtMost(read.scans, daysRead + 7, what)
          }
          const receipt = yield* counted(calls.find(userId, starts[0]!.id))
          assert.strictEqual(Option.getOrThrow(receipt.result).id, starts[0]!.id)
          // Including tomorrow
          assert.isAtMost(receipt.scans, daysRead + 1, "a receipt")
          for (const id of [
            "00000000-0000-4000-8000-000000000000",
            "ffffffff-ffff-4fff-bfff-ffffffffffff"
          ]) {
            assert.isTrue(Option.isNone(yield* calls.find(userId, id)))
          }
          const next = yield* log.search(
            userId,
            {},
            { ...page, before: Option.some(pages.deliveries.result.rows.at(-1)!.id as never) }
          )
          assert.lengthOf(next.rows, 20)
          const [first] = claimed
          const again = yield* counted(log.attempts(first!.id))
          assert.lengthOf(again.result, 1)
          assert.isAtMost(again.scans, daysRead + 7, "attempts of a delivery")
        })
    )

    it.effect("are read further back by the next page, wherever the previous page ended", () =>
      Effect.gen(function* () {
        const log = yield* DeliveryLogStore
        const deliveries = yield* DeliveryStore
        const calls = yield* CallStore
        const userId = yield* newCaller(100_000)
        const now = yield* DateTime.now
        const [endpointId] = (yield* deliveries.due(Option.none(), now)).endpoints
        yield* subscribe(userId, ["balance.low"])
        const sql = yield* PgClient.PgClient
        const [hook] = yield* sql<{ id: string }>`
            SELECT id FROM webhook_endpoints WHERE user_id = ${userId}`
        assert.notStrictEqual(hook!.id, endpointId)
        const sent: Array<string> = []
        const begun: Array<string> = []
        // Three a day for six days, newest first
        for (let n = 0; n < 18; n += 1) {
          const at = DateTime.subtract(now, { hours: 8 * n })
          const event = { ...newEvent(), id: EventId.make(`evt_day_${n}`), type: "task.created" }
          sent.push(yield* deliveries.publishTo(userId, hook!.id as never, event, at))
          const start = callStart(userId, 1, makeCallId(DateTime.toEpochMillis(at)))
          begun.push(start.id)
          yield* writeCalls({ starts: [start], now: at })
          yield* writeCalls({ ends: [callEnd(start, 1)], now: at })
        }
        for (const limit of [1, 2, 3, 5, 18]) {
          const read: Array<string> = []
          for (let before = Option.none<never>(); read.length < 18;) {
            const { rows } = yield* log.search(userId, {}, { before, limit })
            assert.isAbove(rows.length, 0)
            read.push(...rows.map(({ id }) => id))
            before = Option.some(rows.at(-1)!.id as never)
          }
          assert.deepStrictEqual(read, sent)
          const found: Array<string> = []
          while (found.length < 18) {
            const { rows } = yield* calls.search(userId, { limit, before: found.at(-1) })
            assert.isAbove(rows.length, 0)
            found.push(...rows.map(({ id }) => id))
          }
          assert.deepStrictEqual(found, begun)
        }
      })
    )
  })
})
