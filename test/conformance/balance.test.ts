import { assert, layer } from "@effect/vitest"
import { DateTime, Duration, Effect, Layer, Option } from "effect"
import { TestClock } from "effect/testing"
import type { UserId } from "../../src/domain/Ids.ts"
import type { Finish } from "../../src/tasks/TaskStore.ts"
import { WalletStore } from "../../src/wallet/WalletStore.ts"
import { balanceLow } from "../../src/webhooks/Events.ts"
import { advance, eventually, layerGateway, makeUser } from "../support/gateway.ts"
import { describeStores } from "../support/stores.ts"
import {
  accept,
  alertedBalances,
  balanceAlerts,
  breaches,
  credits,
  finish,
  newWallet,
  subscribe,
  walletStores
} from "../support/wallets.ts"

/** `BALANCE_ALERT_THROTTLE`, default 1 hour. */
const throttle = Duration.hours(1)

const now = DateTime.now

const charge = Effect.fnUntraced(function* (userId: UserId, amount: number, held = amount) {
  const { outcome, taskId } = yield* accept(userId, held)
  assert.strictEqual(outcome._tag, "Accepted")
  return yield* settle(taskId, amount)
})

const settle = Effect.fnUntraced(function* (taskId: Finish["taskId"], amount: number | undefined) {
  const at = yield* now
  return yield* finish(taskId, amount, {
    alert: (wallet) => balanceLow(wallet, at),
    throttleSeconds: Duration.toSeconds(throttle),
    now: at
  })
})

let operations = 0

const add = Effect.fnUntraced(function* (
  userId: UserId,
  kind: "top_up" | "adjustment",
  amount: number
) {
  operations += 1
  const wallets = yield* WalletStore
  const operationId = `${kind}:${userId}:${operations}`
  const at = yield* now
  yield* wallets.add({
    userId,
    kind,
    amount: credits(amount),
    operationId,
    note: null,
    traceId: "",
    now: at
  })
})
const topUp = (userId: UserId, amount: number) => add(userId, "top_up", amount)
const adjust = (userId: UserId, amount: number) => add(userId, "adjustment", amount)

const wallet = Effect.fnUntraced(function* (userId: UserId) {
  const wallets = yield* WalletStore
  return Option.getOrThrow(yield* wallets.find(userId))
})

/** Adds credits like a first top-up, with a subscribed endpoint. */
const watched = Effect.fnUntraced(function* (amount: number) {
  const userId = yield* newWallet(amount)
  yield* subscribe(userId)
  return userId
})

/** docs/reference/requirements.md#balance-events */
describeStores("balance.low", (database, store) => {
  layer(Layer.provideMerge(walletStores, database), { timeout: "60 seconds" })((it) => {
    it.effect("fires once when the balance drops below the threshold after a charge", () =>
      Effect.gen(function* () {
        const userId = yield* watched(1010)
        yield* charge(userId, 10)
        assert.deepStrictEqual(yield* alertedBalances(userId), [], "at the threshold is not below")
        yield* charge(userId, 0.01)
        assert.deepStrictEqual(yield* alertedBalances(userId), ["999.99"])
        assert.strictEqual((yield* wallet(userId)).state, "ALERTED")
      })
    )

    it.effect("has balance and threshold in its payload with two decimals, rounded down", () =>
      Effect.gen(function* () {
        const userId = yield* watched(1000)
        yield* accept(userId, 100)
        yield* charge(userId, 0.000001)
        const [event] = yield* balanceAlerts(userId)
        assert.match(event.id, /^evt_/u)
        assert.deepStrictEqual(event, {
          id: event.id,
          type: "balance.low",
          created_at: event.created_at,
          data: {
            user_id: userId,
            payload: {
              available_balance: "899.99",
              trigger_threshold: "1000.00",
              currency: "credits"
            }
          }
        })
        assert.strictEqual(new Date(event.created_at).toISOString(), event.created_at)
      })
    )

    it.effect("does not fire again below the threshold without a top-up", () =>
      Effect.gen(function* () {
        const userId = yield* watched(1001)
        for (let round = 0; round < 4; round += 1) {
          yield* charge(userId, 2)
          yield* TestClock.adjust("2 hours")
        }
        assert.deepStrictEqual(yield* alertedBalances(userId), ["999.00"])
      })
    )

    it.effect("fires at the next drop after a top-up to the threshold", () =>
      Effect.gen(function* () {
        const userId = yield* watched(1001)
        yield* charge(userId, 2)
        yield* topUp(userId, 1)
        assert.strictEqual((yield* wallet(userId)).state, "NORMAL")
        yield* charge(userId, 1)
        assert.deepStrictEqual(yield* alertedBalances(userId), ["999.00", "999.00"])
      })
    )

    it.effect("is not re-armed by a top-up that stays below the threshold", () =>
      Effect.gen(function* () {
        const userId = yield* watched(1001)
        yield* charge(userId, 11)
        yield* topUp(userId, 9.99)
        assert.strictEqual((yield* wallet(userId)).state, "ALERTED")
        yield* TestClock.adjust("2 hours")
        yield* charge(userId, 1)
        assert.deepStrictEqual(yield* alertedBalances(userId), ["990.00"])
      })
    )

    it.effect("is re-armed by an adjustment, but fires only after the throttle window", () =>
      Effect.gen(function* () {
        const userId = yield* watched(1001)
        yield* charge(userId, 2)
        yield* adjust(userId, 10)
        assert.strictEqual((yield* wallet(userId)).state, "NORMAL")
        yield* charge(userId, 10)
        assert.deepStrictEqual(yield* alertedBalances(userId), ["999.00"], "inside the window")
        yield* TestClock.adjust(Duration.subtract(throttle, Duration.millis(1)))
        yield* charge(userId, 1)
        assert.deepStrictEqual(
          yield* alertedBalances(userId),
          ["999.00"],
          "a millisecond before its end"
        )
        yield* TestClock.adjust("1 millis")
        yield* charge(userId, 1)
        assert.deepStrictEqual(yield* alertedBalances(userId), ["999.00", "997.00"])
      })
    )

    it.effect("fires before the window ends if a top-up follows the adjustment", () =>
      Effect.gen(function* () {
        const userId = yield* watched(1001)
        yield* charge(userId, 2)
        yield* adjust(userId, 10)
        yield* topUp(userId, 1)
        yield* charge(userId, 20)
        assert.deepStrictEqual(yield* alertedBalances(userId), ["999.00", "990.00"])
      })
    )

    it.effect("does not fire without a subscriber, and fires at the first charge with one", () =>
      Effect.gen(function* () {
        const userId = yield* newWallet(1001)
        yield* subscribe(userId, ["task.created"])
        yield* subscribe(userId, ["balance.low"], false)
        yield* charge(userId, 2)
        assert.deepStrictEqual(yield* alertedBalances(userId), [])
        assert.strictEqual((yield* wallet(userId)).state, "NORMAL")
        yield* subscribe(userId)
        assert.deepStrictEqual(yield* alertedBalances(userId), [])
        yield* charge(userId, 1)
        assert.deepStrictEqual(yield* alertedBalances(userId), ["998.00"])
      })
    )

    it.effect("does not fire at or above the threshold", () =>
      Effect.gen(function* () {
        const userId = yield* watched(1002)
        yield* charge(userId, 1)
        yield* charge(userId, 1)
        assert.deepStrictEqual(yield* alertedBalances(userId), [])
        assert.strictEqual((yield* wallet(userId)).state, "NORMAL")
      })
    )

    it.effect("does not fire for a hold or its release", () =>
      Effect.gen(function* () {
        const userId = yield* watched(1001)
        const { taskId } = yield* accept(userId, 500)
        assert.deepStrictEqual(yield* alertedBalances(userId), [])
        yield* settle(taskId, undefined)
        assert.deepStrictEqual(yield* alertedBalances(userId), [])
      })
    )

    it.effect("fires when the settled balance drops below the threshold while a hold is open", () =>
      Effect.gen(function* () {
        const userId = yield* watched(1001)
        const long = yield* accept(userId, 900)
        yield* charge(userId, 2)
        assert.deepStrictEqual(yield* alertedBalances(userId), ["99.00"])
        yield* settle(long.taskId, undefined)
        assert.strictEqual((yield* wallet(userId)).state, "ALERTED", "a release is not a recovery")
      })
    )

    it.effect("does not fire for a charge of zero or an adjustment", () =>
      Effect.gen(function* () {
        const userId = yield* watched(1001)
        yield* adjust(userId, -10)
        yield* charge(userId, 0)
        yield* charge(userId, 0, 5)
        assert.deepStrictEqual(yield* alertedBalances(userId), [])
        yield* charge(userId, 1)
        assert.deepStrictEqual(yield* alertedBalances(userId), ["990.00"])
      })
    )

    it.effect("uses the user's threshold, and is re-armed by one at or below the balance", () =>
      Effect.gen(function* () {
        const wallets = yield* WalletStore
        const userId = yield* watched(100)
        yield* wallets.setThreshold(userId, credits(50))
        yield* charge(userId, 50)
        assert.deepStrictEqual(yield* alertedBalances(userId), [])
        yield* charge(userId, 1)
        assert.deepStrictEqual(yield* alertedBalances(userId), ["49.00"])
        yield* wallets.setThreshold(userId, credits(49))
        assert.strictEqual((yield* wallet(userId)).state, "NORMAL")
        yield* charge(userId, 1)
        assert.deepStrictEqual(yield* alertedBalances(userId), ["49.00"], "the window")
        yield* TestClock.adjust(throttle)
        yield* charge(userId, 1)
        assert.deepStrictEqual(yield* alertedBalances(userId), ["49.00", "47.00"])
      })
    )

    it.effect("fires once when sixteen clients charge one wallet at the same time", () =>
      Effect.gen(function* () {
        for (let round = 0; round < (store === "postgres" ? 10 : 2); round += 1) {
          const userId = yield* watched(1005)
          const tasks = yield* Effect.forEach(Array.from({ length: 16 }), () => accept(userId, 1), {
            concurrency: "unbounded"
          })
          yield* Effect.forEach(tasks, ({ taskId }) => settle(taskId, 1), {
            concurrency: "unbounded"
          })
          const found = yield* alertedBalances(userId)
          assert.strictEqual(found.length, 1, JSON.stringify(found))
          assert.strictEqual((yield* wallet(userId)).settled, credits(1005 - 16))
        }
        assert.strictEqual(yield* breaches, 0)
      })
    )
  })
})

layer(layerGateway())("balance.low over HTTP", (it) => {
  it.effect("is delivered once to the subscribed endpoint, and the wallet is ALERTED", () =>
    Effect.gen(function* () {
      const user = yield* makeUser({ credits: 1005 })
      const endpoint = yield* user.call("POST", "/manage/v1/webhook-endpoints", {
        url: "https://example.com/hook",
        events: ["balance.low"]
      })
      assert.strictEqual(endpoint.status, 201, endpoint.text)
      const path = "/vendors/alibaba/v1/text-to-image-max/generation"
      for (const prompt of ["one", "two"]) {
        const created = yield* user.call("POST", path, { prompt })
        assert.strictEqual(created.headers.get("x-service-cost"), "7.50")
      }
      yield* advance("6 seconds")
      yield* eventually(
        user.call("GET", "/manage/v1/wallet"),
        ({ json }) => json.settled_balance === "990.00"
      )
      const shown = yield* user.call("GET", "/manage/v1/wallet")
      assert.deepStrictEqual(shown.json, {
        available_balance: "990.00",
        settled_balance: "990.00",
        held_balance: "0.00",
        trigger_threshold: "1000.00",
        currency: "credits",
        state: "ALERTED"
      })
      const log = yield* eventually(
        Effect.andThen(advance("1 second"), user.call("GET", "/manage/v1/webhook-deliveries")),
        ({ json }) => json.data[0]?.status === "succeeded"
      )
      const sent = log.json.data.map((it: { type: string; attempt_count: number }) => [
        it.type,
        it.attempt_count
      ])
      assert.deepStrictEqual(sent, [["balance.low", 1]])
    })
  )
})
