import { PgClient } from "@effect/sql-pg"
import { assert, describe } from "@effect/vitest"
import { DateTime, Effect, Layer, Option } from "effect"
import { EndpointId, EventId } from "../../../src/domain/Ids.ts"
import type { UserId } from "../../../src/domain/Ids.ts"
import { UserStore } from "../../../src/users/UserStore.ts"
import { DeliveryStore } from "../../../src/webhooks/DeliveryStore.ts"
import * as DeliveryStoreLive from "../../../src/webhooks/DeliveryStoreLive.ts"
import { mockOutcome } from "../../../src/webhooks/WebhookSender.ts"
import { liveLayer } from "../../support/liveLayer.ts"
import { quietStores } from "../../support/quietStores.ts"
import { countSoFar } from "../../support/statistics.ts"
import {
  accept,
  callEnd,
  callKeyOf,
  callStart,
  credits,
  drawnCall,
  finish,
  newCaller,
  newWallet,
  reservation,
  walletStores,
  writeCalls,
  writeReservations
} from "../../support/wallets.ts"

/** Rows that statements of this connection have read in sequential scans. */
const rowsReadThrough = Effect.gen(function* () {
  const sql = yield* PgClient.PgClient
  yield* countSoFar
  return yield* sql<{ table: string; rows: bigint }>`
    SELECT relname::text AS "table", seq_tup_read AS rows FROM pg_stat_user_tables
    WHERE seq_tup_read > 0 AND relname NOT IN ('schema_migrations', 'schema_functions') ORDER BY relname`
})

/** Index entries of the ledger that statements of this connection have read. */
const ledgerEntriesRead = Effect.gen(function* () {
  const sql = yield* PgClient.PgClient
  yield* countSoFar
  const [row] = yield* sql<{ entries: number }>`
    SELECT sum(idx_tup_read)::int AS entries FROM pg_stat_user_indexes WHERE relname = 'wallet_entries'`
  return row!.entries
})

/** Entries for unfinished tasks of keys that index scans of this connection have read. */
const unfinishedRead = Effect.gen(function* () {
  const sql = yield* PgClient.PgClient
  yield* countSoFar
  const [row] = yield* sql<{ entries: bigint }>`
    SELECT idx_tup_read AS entries FROM pg_stat_user_indexes WHERE indexrelname = 'runs_api_key'`
  return Number(row?.entries)
})

/** Lookups of key budgets, of any kind. */
const budgetScans = Effect.gen(function* () {
  const sql = yield* PgClient.PgClient
  yield* countSoFar
  const [row] = yield* sql<{ scans: bigint }>`
    SELECT seq_scan + coalesce(idx_scan, 0) AS scans FROM pg_stat_user_tables WHERE relname = 'key_budgets'`
  return row!.scans
})

/** Rows of the queue that index scans of this connection have fetched. */
const queueRowsFetched = Effect.gen(function* () {
  const sql = yield* PgClient.PgClient
  yield* countSoFar
  const [row] = yield* sql<{ rows: bigint }>`
    SELECT idx_tup_fetch AS rows FROM pg_stat_user_tables WHERE relname = 'delivery_queue'`
  return Number(row?.rows)
})

const endpoints = Array.from({ length: 20 }, (_, n) => EndpointId.make(`whe_${n}`))

const makeEndpoints = Effect.gen(function* () {
  const sql = yield* PgClient.PgClient
  const userId = yield* newWallet(0)
  yield* sql`
    INSERT INTO webhook_endpoints
      (id, user_id, url, events, enabled, secret, secret_preview, created_at, updated_at)
    SELECT id, ${userId}::uuid, 'https://example.com', '{}', true, 'x', 'x', now(), now()
    FROM unnest(${endpoints}::text[]) AS id`
  return userId
})

for (const [name, database] of Object.entries(quietStores)) {
  describe(`plans (${name})`, () => {
    const stores = Layer.merge(walletStores, DeliveryStoreLive.layer)
    liveLayer(Layer.provideMerge(stores, database))((it) => {
      it.effect("made for an empty store scan nothing sequentially once it is full", () =>
        Effect.gen(function* () {
          const sql = yield* PgClient.PgClient
          yield* sql`ANALYZE`.unprepared
          const pairs = (wallets: number, count: number) =>
            Effect.gen(function* () {
              const users = yield* Effect.forEach(Array.from({ length: wallets }), () =>
                newWallet(10_000)
              )
              for (let n = 0; n < count; n += 1) {
                const { outcome, taskId } = yield* accept(users[n % wallets]!, 1)
                assert.strictEqual(outcome._tag, "Accepted")
                // A tenth stays open.
                if (n % 10 !== 0) yield* finish(taskId, 1)
              }
            })
          // Plans are cached from the sixth execution on.
          yield* pairs(2, 20)
          const before = yield* rowsReadThrough
          yield* pairs(10, 200)
          assert.deepStrictEqual(yield* rowsReadThrough, before)
        })
      )

      // Both are Postgres 18. With the same planner settings, which this test has shown, they make the same plans
      if (name === "embedded") return

      it.effect(
        "scan nothing sequentially for metered calls, with their own hold or on a reservation",
        () =>
          Effect.gen(function* () {
            const sql = yield* PgClient.PgClient
            yield* sql`ANALYZE`.unprepared
            const rounds = (wallets: number, calls: number, count: number) =>
              Effect.gen(function* () {
                const users = yield* Effect.forEach(Array.from({ length: wallets }), () =>
                  newCaller(10_000)
                )
                for (let n = 0; n < count; n += 1) {
                  const starts = Array.from({ length: calls }, (_, k) =>
                    callStart(users[k % wallets]!, 1)
                  )
                  yield* writeCalls({ starts })
                  // A tenth stays open.
                  yield* writeCalls({
                    ends: starts.filter((_, k) => k % 10 !== 0).map((start) => callEnd(start, 1))
                  })
                  yield* writeReservations({
                    sizes: users.map((userId) => reservation(userId, 0, 100)),
                    ended: n === 0 ? [] : starts.map(({ user }) => drawnCall(callStart(user, 1), 1))
                  })
                }
              })
            yield* rounds(2, 2, 20)
            const before = yield* rowsReadThrough
            yield* rounds(10, 100, 10)
            assert.deepStrictEqual(yield* rowsReadThrough, before)
            // The ledger's index, which has thousands of entries by now, is not scanned either
            const read = yield* ledgerEntriesRead
            yield* rounds(1, 10, 4)
            assert.isAtMost((yield* ledgerEntriesRead) - read, 60)
          })
      )

      it.effect("look up no budget for keys without limits, and others by index", () =>
        Effect.gen(function* () {
          const sql = yield* PgClient.PgClient
          const users = yield* UserStore
          yield* sql`ANALYZE`.unprepared
          const spend = Effect.fnUntraced(function* (userId: UserId, rounds: number) {
            const apiKeyId = callKeyOf(userId)
            for (let n = 0; n < rounds; n += 1) {
              const { outcome, taskId } = yield* accept(userId, 1, { apiKeyId })
              assert.strictEqual(outcome._tag, "Accepted")
              if (n % 5 !== 0) yield* finish(taskId, 1)
              const starts = [callStart(userId, 1), callStart(userId, 2)]
              yield* writeCalls({ starts })
              yield* writeCalls({ ends: [callEnd(starts[0]!, 1)] })
              yield* writeReservations({
                sizes: [reservation(userId, 0, 10)],
                ended: n === 0 ? [] : [drawnCall(callStart(userId, 1), 1)]
              })
            }
          })
          const none = yield* budgetScans
          yield* spend(yield* newCaller(10_000), 10)
          assert.strictEqual(yield* budgetScans, none)
          const now = yield* DateTime.now
          const limit = { spendLimit: credits(5000), reset: "monthly" as const }
          const limited = yield* Effect.forEach(Array.from({ length: 20 }), () => newCaller(10_000))
          for (const userId of limited) {
            yield* users.updateKey(userId, callKeyOf(userId), limit, now)
          }
          yield* spend(limited[0]!, 10)
          assert.isTrue((yield* budgetScans) > none)
          const before = yield* rowsReadThrough
          for (const userId of limited) yield* spend(userId, 10)
          assert.deepStrictEqual(yield* rowsReadThrough, before)
        })
      )

      it.effect("count unfinished tasks for a limit without reading those that have ended", () =>
        Effect.gen(function* () {
          const sql = yield* PgClient.PgClient
          // A row is known to be dead once the commit of its end is in the log
          yield* sql`SET synchronous_commit = on`.unprepared
          const userId = yield* newCaller(10_000)
          const apiKeyId = callKeyOf(userId)
          // Planned while the key has many
          yield* sql`
            INSERT INTO runs (task_id, api_key_id, deadline_at)
            SELECT gen_random_uuid(), ${apiKeyId}, now() FROM generate_series(1, 500)`
          yield* sql`ANALYZE`.unprepared
          yield* sql`DELETE FROM runs WHERE api_key_id = ${apiKeyId}`
          const before = yield* unfinishedRead
          for (let n = 0; n < 100; n += 1) {
            const limits = { apiKeyId, runningMax: 3, userRunningMax: 3 }
            const { outcome, taskId } = yield* accept(userId, 1, limits)
            assert.strictEqual(outcome._tag, "Accepted")
            yield* finish(taskId, 1)
          }
          // Each ended one is read a few times until it is marked
          assert.isAtMost((yield* unfinishedRead) - before, 3000)
        })
      )

      it.effect(
        "claim a burst of deliveries after idle hours row by row, without repeated scans",
        () =>
          Effect.gen(function* () {
            const sql = yield* PgClient.PgClient
            const store = yield* DeliveryStore
            const userId = yield* makeEndpoints
            const now = yield* DateTime.now
            const claim = store.claim({
              wanted: endpoints.map((endpointId) => ({ endpointId, limit: 5 })),
              owner: "proc_1",
              now: DateTime.add(now, { seconds: 1 }),
              claimedAt: now
            })
            yield* sql`ANALYZE delivery_queue`.unprepared
            yield* Effect.repeat(Effect.asVoid(claim), { times: 7 })
            for (let n = 0; n < 400; n += 1) {
              const event = {
                id: EventId.make(`evt_${n}`),
                body: new Uint8Array(2),
                type: "task.created"
              }
              yield* store.publishTo(userId, endpoints[n % endpoints.length]!, event, now)
            }
            const before = yield* queueRowsFetched
            const claimed = yield* claim
            assert.lengthOf(claimed, 100)
            yield* store.record(
              claimed.map((one) => ({
                claimed: one,
                endedAt: now,
                outcome: mockOutcome(200),
                nextDueAt: Option.none()
              }))
            )
            // Found, updated, deleted.
            assert.isAtMost((yield* queueRowsFetched) - before, 400)
          })
      )
    })
  })
}
