import { assert, layer } from "@effect/vitest"
import { DateTime, Effect, Layer, Option } from "effect"
import { TestClock } from "effect/testing"
import { randomUUID } from "node:crypto"
import { EventType } from "../../../src/domain/Event.ts"
import { UserId } from "../../../src/domain/Ids.ts"
import { WalletStore } from "../../../src/wallet/WalletStore.ts"
import { EventLogStore } from "../../../src/webhooks/EventLogStore.ts"
import type { EventPosition } from "../../../src/webhooks/EventLogStore.ts"
import { balanceLow } from "../../../src/webhooks/Events.ts"
import { describeStores } from "../../support/stores.ts"
import {
  accept,
  credits,
  finish,
  newWallet,
  subscribe,
  walletStores
} from "../../support/wallets.ts"

/** docs/reference/http.md#events-of-a-user, ADR 0232: the clocks of the processes that publish differ */
describeStores("the log of a user's events", (database) => {
  const stores = Layer.merge(walletStores, EventLogStore.layer)
  layer(Layer.provideMerge(stores, database), { timeout: "60 seconds" })((it) => {
    /** A charge by a process whose clock is so many seconds behind. */
    const charge = Effect.fnUntraced(function* (userId: UserId, secondsBehind: number) {
      const { taskId } = yield* accept(userId, 10)
      const now = DateTime.subtract(yield* DateTime.now, { seconds: secondsBehind })
      yield* finish(taskId, 10, { alert: (wallet) => balanceLow(wallet, now), now })
    })

    const topUp = Effect.fnUntraced(function* (userId: UserId) {
      const now = yield* DateTime.now
      yield* (yield* WalletStore).add({
        userId,
        kind: "top_up",
        amount: credits(10),
        operationId: `top_up:${userId}:${DateTime.toEpochMillis(now)}`,
        note: null,
        traceId: "",
        now
      })
    })

    const alertsAfter = Effect.fnUntraced(function* (userId: UserId, position: EventPosition) {
      const log = yield* EventLogStore
      const page = yield* log.after(userId, {
        types: EventType.literals,
        since: Option.none(),
        position,
        entries: 500
      })
      return page.rows.filter(({ type }) => type === "balance.low")
    })

    it.effect("has an alert that is committed after the beginning, whatever the clock says", () =>
      Effect.gen(function* () {
        yield* TestClock.adjust("1 day")
        const userId = yield* newWallet(1005)
        yield* subscribe(userId)
        const beginning = yield* (yield* EventLogStore).position(userId, Option.none())
        yield* charge(userId, 5)
        assert.lengthOf(yield* alertsAfter(userId, beginning), 1)
      })
    )

    it.effect("begins before all for a user that is not there", () =>
      Effect.gen(function* () {
        const { position } = yield* EventLogStore
        const nobody = UserId.make(randomUUID())
        const now = yield* DateTime.now
        for (const since of [Option.none(), Option.some(now)]) {
          assert.strictEqual((yield* position(nobody, since)).seq, 0n)
        }
      })
    )

    it.effect("has an alert of a clock that is behind that of the alert before it", () =>
      Effect.gen(function* () {
        yield* TestClock.adjust("1 day")
        const userId = yield* newWallet(1005)
        yield* subscribe(userId)
        yield* charge(userId, 0)
        yield* topUp(userId)
        const behind = yield* (yield* EventLogStore).position(userId, Option.none())
        assert.lengthOf(yield* alertsAfter(userId, behind), 0)
        yield* TestClock.adjust("1 second")
        yield* charge(userId, 5)
        assert.lengthOf(yield* alertsAfter(userId, behind), 1)
      })
    )
  })
})
