import { assert, layer } from "@effect/vitest"
import { DateTime, Effect, Layer, Option } from "effect"
import { SqlClient } from "effect/sql"
import { TestClock } from "effect/testing"
import { makeApiKeyId, makeTaskId } from "../../src/domain/Ids.ts"
import type { ApiKeyId, UserId } from "../../src/domain/Ids.ts"
import { LogRetention } from "../../src/services/LogRetention.ts"
import { CallStore } from "../../src/store/CallStore.ts"
import { PartitionStore } from "../../src/store/PartitionStore.ts"
import { UserStore } from "../../src/store/UserStore.ts"
import { WalletStore } from "../../src/store/WalletStore.ts"
import { describeStores } from "../support/stores.ts"
import { breaches, credits, ledgerOf, newWallet, walletStores } from "../support/wallets.ts"

const newKey = Effect.fnUntraced(function* (userId: UserId) {
  const now = yield* DateTime.now
  const row = yield* (yield* UserStore).createKey({
    id: makeApiKeyId(DateTime.toEpochMillis(now)),
    userId,
    keyHash: new Uint8Array(32),
    preview: "sk-...abcd",
    name: "test",
    scopes: ["inference"],
    expiresAt: null,
    now
  })
  return row.id
})

/** A call that is held now, as `Metering` does it. */
const open = Effect.fnUntraced(function* (user: UserId, key: ApiKeyId) {
  const now = yield* DateTime.now
  const id = makeTaskId(DateTime.toEpochMillis(now))
  const refused = yield* (yield* CallStore).open(
    [
      {
        id,
        user,
        key,
        amount: credits(2),
        trace: "0".repeat(32),
        vendor: "openai",
        model: "gpt-4o",
        route: "POST /v1/chat/completions",
        sandbox: false
      }
    ],
    "process",
    now
  )
  assert.strictEqual(refused.size, 0)
  return id
})

const close = Effect.fnUntraced(function* (id: string) {
  const now = yield* DateTime.now
  const captured = credits(1)
  const rest = { outcome: "settled", status: 200, account: null, usage: null } as const
  yield* (yield* CallStore).close({
    ends: [{ id, captured, ...rest }],
    alert: () => {
      throw new Error("nobody listens for balance.low here")
    },
    throttleSeconds: 3600,
    now
  })
})

describeStores("receipts of calls", (database) => {
  const Live = Layer.mergeAll(LogRetention.layer, CallStore.layer).pipe(
    Layer.provideMerge(PartitionStore.layer),
    Layer.provideMerge(walletStores),
    Layer.provideMerge(database)
  )

  // The store lives in real time: only what is asked of it has the test's
  layer(Live, { timeout: "60 seconds", excludeTestServices: true })((it) => {
    it.effect("are kept for 30 days and dropped by the day; the ledger stays whole", () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        const calls = yield* CallStore
        const { keep } = yield* LogRetention
        yield* TestClock.setTime(Date.parse("2026-03-01T23:59:00Z"))
        const user = yield* newWallet(100)
        const key = yield* newKey(user)
        const page = { before: Option.none(), limit: 100 }
        const listed = Effect.map(calls.list(user, page), (rows) => rows.map(({ id }) => id))
        // Opened before any day had its partition, and one that goes on over midnight
        const first = yield* open(user, key)
        yield* TestClock.adjust("1 second")
        const overMidnight = yield* open(user, key)
        yield* close(first)
        yield* TestClock.adjust("2 minutes")
        yield* keep
        yield* close(overMidnight)
        const made = [overMidnight, first]
        for (let day = 0; day < 29; day += 1) {
          yield* keep
          const id = yield* open(user, key)
          yield* close(id)
          made.unshift(id)
          yield* TestClock.adjust("1 day")
        }
        yield* keep
        assert.deepStrictEqual(yield* listed, made, "30 days: all are there, newest first")
        assert.deepInclude(Option.getOrThrow(yield* calls.find(user, overMidnight)), {
          captured: credits(1),
          held: credits(2)
        })

        // 30 days after the first calls' day: that day goes, whole
        yield* TestClock.adjust("1 day")
        yield* keep
        assert.deepStrictEqual(yield* listed, made.slice(0, -2))
        assert.deepStrictEqual(yield* calls.find(user, first), Option.none())
        const parts = yield* sql`
        SELECT DISTINCT tableoid::regclass::text AS part FROM calls ORDER BY 1`
        assert.strictEqual(parts[0]?.["part"], "calls_20260302")
        assert.notInclude(JSON.stringify(parts), "default")

        yield* TestClock.adjust("60 days")
        yield* keep
        assert.deepStrictEqual(yield* listed, [])
        const kinds = (yield* ledgerOf(user)).map(({ kind }) => kind)
        assert.strictEqual(kinds.filter((kind) => kind === "capture").length, made.length)
        const wallet = Option.getOrThrow(yield* (yield* WalletStore).find(user))
        assert.deepInclude(wallet, { settled: credits(100 - made.length), held: credits(0) })
        assert.strictEqual(yield* breaches, 0)
        // A receipt that is gone is not made again: its hold was closed once
        yield* close(first)
        assert.deepStrictEqual(yield* listed, [])
      }).pipe(Effect.provide(TestClock.layer()))
    )
  })
})
