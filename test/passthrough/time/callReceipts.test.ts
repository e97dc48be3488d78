import { assert, describe, layer } from "@effect/vitest"
import { DateTime, Effect, Layer, Option } from "effect"
import { SqlClient } from "effect/sql"
import { TestClock } from "effect/testing"
import { AppConfig } from "../../../src/config/Config.ts"
import { makeCallId } from "../../../src/domain/Ids.ts"
import type { UserId } from "../../../src/domain/Ids.ts"
import { CallStore } from "../../../src/passthrough/CallStore.ts"
import type { CallStart } from "../../../src/passthrough/CallStore.ts"
import { LogRetention } from "../../../src/process/retention/LogRetention.ts"
import { PartitionStore } from "../../../src/process/retention/PartitionStore.ts"
import { WalletStore } from "../../../src/wallet/WalletStore.ts"
import { startedDatabase } from "../../support/stores.ts"
import {
  breaches,
  callEnd,
  callStart,
  credits,
  ledgerOf,
  newCaller,
  walletStores,
  writeCalls
} from "../../support/wallets.ts"

/** A call with a hold, as `Metering` opens it. */
const open = Effect.fnUntraced(function* (user: UserId) {
  const id = makeCallId(DateTime.toEpochMillis(yield* DateTime.now))
  const start = callStart(user, 2, id)
  assert.strictEqual((yield* writeCalls({ starts: [start] })).refused.size, 0)
  return start
})

const close = (start: CallStart) => writeCalls({ ends: [callEnd(start, 1)] })

describe("receipts of calls", () => {
  const Live = Layer.mergeAll(LogRetention.layer, CallStore.layer).pipe(
    Layer.provide(AppConfig.layerOf({})),
    Layer.provideMerge(PartitionStore.layer),
    Layer.provideMerge(walletStores),
    Layer.provideMerge(startedDatabase)
  )

  // The store's clock is real; only the times in its statements come from the test
  layer(Live, { timeout: "60 seconds", excludeTestServices: true })((it) => {
    it.effect("are kept for 30 days and dropped by the day; the ledger stays complete", () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        const calls = yield* CallStore
        const { maintain } = yield* LogRetention
        yield* TestClock.setTime(Date.parse("2026-03-01T23:59:00Z"))
        const user = yield* newCaller(100)
        const page = { limit: 100 }
        const listed = Effect.map(calls.search(user, page), ({ rows }) => rows.map(({ id }) => id))
        // Opened before any day had a partition, and one that runs past midnight
        const first = yield* open(user)
        yield* TestClock.adjust("1 second")
        const overMidnight = yield* open(user)
        yield* close(first)
        yield* TestClock.adjust("2 minutes")
        yield* maintain
        yield* close(overMidnight)
        const made = [overMidnight.id, first.id]
        for (let day = 0; day < 29; day += 1) {
          yield* maintain
          const start = yield* open(user)
          yield* close(start)
          made.unshift(start.id)
          yield* TestClock.adjust("1 day")
        }
        yield* maintain
        assert.deepStrictEqual(yield* listed, made, "30 days: all are there, newest first")
        assert.deepInclude(Option.getOrThrow(yield* calls.find(user, overMidnight.id)), {
          captured: credits(1),
          held: credits(2)
        })

        // 30 days after the day of the first calls, which is dropped as a whole
        yield* TestClock.adjust("1 day")
        yield* maintain
        assert.deepStrictEqual(yield* listed, made.slice(0, -2))
        assert.deepStrictEqual(yield* calls.find(user, first.id), Option.none())
        const parts = yield* sql`
        SELECT DISTINCT tableoid::regclass::text AS part FROM calls ORDER BY 1`
        assert.strictEqual(parts[0]?.["part"], "calls_20260302")
        assert.notInclude(JSON.stringify(parts), "default")

        yield* TestClock.adjust("60 days")
        yield* maintain
        assert.deepStrictEqual(yield* listed, [])
        const kinds = (yield* ledgerOf(user)).map(({ kind }) => kind)
        assert.strictEqual(kinds.filter((kind) => kind === "capture").length, made.length)
        const wallet = Option.getOrThrow(yield* (yield* WalletStore).find(user))
        assert.deepInclude(wallet, { settled: credits(100 - made.length), held: credits(0) })
        assert.strictEqual(yield* breaches, 0)
        // A dropped receipt is not created again: its hold was closed once
        yield* close(first)
        assert.deepStrictEqual(yield* listed, [])
      }).pipe(Effect.provide(TestClock.layer()))
    )
  })
})
