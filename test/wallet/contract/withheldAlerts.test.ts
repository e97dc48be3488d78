import { PgClient } from "@effect/sql-pg"
import { assert, layer } from "@effect/vitest"
import { DateTime, Effect, Layer, Option } from "effect"
import { TestClock } from "effect/testing"
import type { UserId } from "../../../src/domain/Ids.ts"
import { WalletStore } from "../../../src/wallet/WalletStore.ts"
import { balanceLow } from "../../../src/webhooks/Events.ts"
import { besideLocked } from "../../support/lockedRows.ts"
import { describeStores } from "../../support/stores.ts"
import {
  accept,
  alertedBalances,
  callEnd,
  credits,
  finish,
  newCaller,
  newWallet,
  callStart,
  drawnCall,
  reservation,
  subscribe,
  walletStores,
  writeCalls,
  writeReservations
} from "../../support/wallets.ts"

const throttleSeconds = 3600

/** docs/reference/wallet.md#balance-alert */
describeStores("a crossing that the throttle withheld", (database, kind) => {
  layer(Layer.provideMerge(walletStores, database), { timeout: "60 seconds" })((it) => {
    const end = Effect.fnUntraced(function* (
      userId: UserId,
      price: number,
      captured: number | undefined
    ) {
      const { taskId } = yield* accept(userId, price)
      const now = yield* DateTime.now
      yield* finish(taskId, captured, {
        alert: (wallet) => balanceLow(wallet, now),
        throttleSeconds,
        now
      })
    })
    const charge = (userId: UserId, amount: number) => end(userId, amount, amount)
    const fail = (userId: UserId) => end(userId, 1, undefined)

    let operations = 0
    const add = Effect.fnUntraced(function* (
      userId: UserId,
      kind: "top_up" | "adjustment",
      amount: number
    ) {
      operations += 1
      const now = yield* DateTime.now
      const operationId = `${kind}:${userId}:withheld:${operations}`
      yield* (yield* WalletStore).add({
        userId,
        kind,
        amount: credits(amount),
        operationId,
        note: null,
        traceId: "",
        now
      })
    })

    /** Reports what is due now. Returns the endpoints to notify. */
    const report = Effect.gen(function* () {
      const now = yield* DateTime.now
      return yield* (yield* WalletStore).reportWithheld(
        { alert: (wallet) => balanceLow(wallet, now), throttleSeconds, now },
        100
      )
    })

    const stateOf = (userId: UserId) =>
      Effect.flatMap(WalletStore, (wallets) =>
        Effect.map(wallets.find(userId), (row) => Option.getOrThrow(row).state)
      )

    /** An alert at 999, a recovery by an adjustment, and a fall below the threshold within the window. */
    const withheld = Effect.gen(function* () {
      const userId = yield* newWallet(1002)
      yield* subscribe(userId)
      // No alert, because the balance equals the threshold
      yield* charge(userId, 2)
      yield* charge(userId, 1)
      yield* add(userId, "adjustment", 10)
      yield* charge(userId, 19)
      assert.deepStrictEqual(yield* alertedBalances(userId), ["999.00"])
      return userId
    })

    it.effect("is reported once when the window ends, without another charge", () =>
      Effect.gen(function* () {
        const userId = yield* withheld
        yield* TestClock.adjust("3599 seconds")
        assert.deepStrictEqual(yield* report, [])
        yield* TestClock.adjust("1 second")
        const reports = yield* Effect.all(
          Array.from({ length: 8 }, () => report),
          { concurrency: "unbounded" }
        )
        assert.lengthOf(reports.flat(), 1)
        assert.deepStrictEqual(yield* alertedBalances(userId), ["999.00", "990.00"])
        assert.strictEqual(yield* stateOf(userId), "ALERTED")
        const sql = yield* PgClient.PgClient
        const deliveries = yield* sql`SELECT 1 FROM deliveries WHERE user_id = ${userId}`
        assert.lengthOf(deliveries, 2)
        yield* TestClock.adjust("2 hours")
        assert.deepStrictEqual(yield* report, [])
      })
    )

    if (kind === "postgres") {
      it.effect("waits while its wallet is locked, and delays no other", () =>
        Effect.gen(function* () {
          const [busy, other] = [yield* withheld, yield* withheld]
          yield* TestClock.adjust("1 hour")
          yield* besideLocked(`SELECT FROM wallets WHERE user_id = '${busy}'`, report)
          assert.deepStrictEqual(yield* alertedBalances(busy), ["999.00"])
          assert.deepStrictEqual(yield* alertedBalances(other), ["999.00", "990.00"])
        })
      )
    }

    it.effect("is also remembered for calls and for calls on a reservation", () =>
      Effect.gen(function* () {
        const caller = Effect.gen(function* () {
          const userId = yield* newCaller(1001)
          yield* subscribe(userId)
          yield* charge(userId, 2)
          yield* add(userId, "adjustment", 10)
          return userId
        })
        const calling = yield* caller
        const start = callStart(calling, 19)
        yield* writeCalls({ starts: [start] })
        yield* writeCalls({ ends: [callEnd(start, 19)] })
        const drawing = yield* caller
        yield* writeReservations({ sizes: [reservation(drawing, 19)] })
        const drawn = drawnCall(callStart(drawing, 19), 19)
        yield* writeReservations({ ended: [drawn], sizes: [reservation(drawing, 0)] })
        yield* TestClock.adjust("1 hour")
        yield* report
        for (const userId of [calling, drawing]) {
          assert.deepStrictEqual(yield* alertedBalances(userId), ["999.00", "990.00"])
        }
      })
    )

    it.effect("is not reported after a recovery of any kind", () =>
      Effect.gen(function* () {
        const wallets = yield* WalletStore
        const users = [yield* withheld, yield* withheld, yield* withheld, yield* withheld]
        const [adjusted, topped, lowered, fallen] = users as [UserId, UserId, UserId, UserId]
        yield* add(adjusted, "adjustment", 10)
        yield* add(topped, "top_up", 10)
        yield* wallets.setThreshold(lowered, credits(900))
        yield* wallets.setThreshold(lowered, credits(1000))
        // Below again, but no charge crossed the threshold
        yield* add(fallen, "adjustment", 10)
        yield* add(fallen, "adjustment", -10)
        yield* TestClock.adjust("1 hour")
        assert.deepStrictEqual(yield* report, [])
        for (const userId of users) {
          assert.deepStrictEqual(yield* alertedBalances(userId), ["999.00"])
        }
      })
    )

    it.effect("is reported by the next charge if that comes first, and not again", () =>
      Effect.gen(function* () {
        const userId = yield* withheld
        yield* TestClock.adjust("1 hour")
        yield* charge(userId, 1)
        assert.deepStrictEqual(yield* report, [])
        assert.deepStrictEqual(yield* alertedBalances(userId), ["999.00", "989.00"])
      })
    )

    it.effect("is not reported, now or later, if no endpoint subscribes to it anymore", () =>
      Effect.gen(function* () {
        const userId = yield* withheld
        const sql = yield* PgClient.PgClient
        yield* sql`UPDATE webhook_endpoints SET enabled = false WHERE user_id = ${userId}`
        yield* TestClock.adjust("1 hour")
        assert.deepStrictEqual(yield* report, [])
        yield* sql`UPDATE webhook_endpoints SET enabled = true WHERE user_id = ${userId}`
        assert.deepStrictEqual(yield* report, [])
        assert.deepStrictEqual(yield* alertedBalances(userId), ["999.00"])
      })
    )

    it.effect("does not arise from a threshold above the balance, nor from a failed task", () =>
      Effect.gen(function* () {
        const wallets = yield* WalletStore
        const userId = yield* newWallet(1001)
        yield* subscribe(userId)
        yield* charge(userId, 2)
        assert.strictEqual(yield* stateOf(userId), "ALERTED")
        yield* wallets.setThreshold(userId, credits(999))
        assert.strictEqual(yield* stateOf(userId), "NORMAL", "a balance equal to the threshold")
        yield* wallets.setThreshold(userId, credits(2000))
        yield* fail(userId)
        yield* TestClock.adjust("1 hour")
        assert.deepStrictEqual(yield* report, [])
        yield* fail(userId)
        assert.deepStrictEqual(yield* alertedBalances(userId), ["999.00"])
      })
    )
  })
})
