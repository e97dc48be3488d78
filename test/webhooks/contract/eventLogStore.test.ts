import { PgClient } from "@effect/sql-pg"
import { assert, layer } from "@effect/vitest"
import { DateTime, Effect, Exit, Layer, Option } from "effect"
import { TestClock } from "effect/testing"
import { randomUUID } from "node:crypto"
import { StreamedEventType } from "../../../src/domain/Event.ts"
import { UserId } from "../../../src/domain/Ids.ts"
import { PartitionStore } from "../../../src/process/retention/PartitionStore.ts"
import { WalletStore } from "../../../src/wallet/WalletStore.ts"
import { EventLogStore } from "../../../src/webhooks/EventLogStore.ts"
import type { EventPosition, EventRow } from "../../../src/webhooks/EventLogStore.ts"
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
  const stores = Layer.mergeAll(walletStores, EventLogStore.layer, PartitionStore.layer)
  layer(Layer.provideMerge(stores, database), { timeout: "60 seconds" })((it) => {
    /** A charge by a process whose clock is this many seconds slow. */
    const charge = Effect.fnUntraced(function* (userId: UserId, secondsBehind: number) {
      const { taskId } = yield* accept(userId, 10)
      const now = DateTime.subtract(yield* DateTime.now, { seconds: secondsBehind })
      yield* finish(taskId, 10, { alert: (wallet) => balanceLow(wallet, now), now })
    })

    const add = Effect.fnUntraced(function* (userId: UserId, kind: "top_up" | "adjustment") {
      const now = yield* DateTime.now
      yield* (yield* WalletStore).add({
        userId,
        kind,
        amount: credits(10),
        operationId: `${kind}:${userId}:${DateTime.toEpochMillis(now)}`,
        note: null,
        traceId: "",
        now
      })
    })
    const topUp = (userId: UserId) => add(userId, "top_up")

    /** A charge within the throttle window crosses the threshold; the alert is reported when the window ends. */
    const withheldAlert = Effect.fnUntraced(function* (userId: UserId) {
      yield* TestClock.adjust("1 second")
      yield* add(userId, "adjustment")
      yield* charge(userId, 0)
      yield* TestClock.adjust("1 hour")
      const now = yield* DateTime.now
      const alert: Parameters<WalletStore["Service"]["reportWithheld"]>[0]["alert"] = (wallet) =>
        balanceLow(wallet, now)
      yield* (yield* WalletStore).reportWithheld({ alert, throttleSeconds: 3600, now }, 100)
    })

    const alertsAfter = Effect.fnUntraced(function* (
      userId: UserId,
      position: EventPosition,
      entries = 500
    ) {
      const log = yield* EventLogStore
      const filter = { types: StreamedEventType.literals, since: Option.none(), entries }
      const alerts = new Array<EventRow>()
      let from = position
      while (true) {
        const page = yield* log.after(userId, { ...filter, position: from })
        const found = page.rows.filter(({ type }) => type === "balance.low")
        alerts.push(...found)
        const alertsUntil = found.map((it) => it.createdAt).reduce(DateTime.max, from.alertsUntil)
        from = { seq: page.seq, alertsUntil }
        if (!page.isFull) return alerts
      }
    })

    it.effect(
      "returns an alert that is committed after the starting position, whatever its time",
      () =>
        Effect.gen(function* () {
          yield* TestClock.adjust("1 day")
          const userId = yield* newWallet(1005)
          yield* subscribe(userId)
          const beginning = yield* (yield* EventLogStore).position(userId, Option.none())
          yield* charge(userId, 5)
          assert.lengthOf(yield* alertsAfter(userId, beginning), 1)
        })
    )

    it.effect("starts before all events for an unknown user", () =>
      Effect.gen(function* () {
        const { position } = yield* EventLogStore
        const unknownUser = UserId.make(randomUUID())
        const now = yield* DateTime.now
        for (const since of [Option.none(), Option.some(now)]) {
          assert.strictEqual((yield* position(unknownUser, since)).seq, 0n)
        }
      })
    )

    it.effect("returns an alert with an earlier time than the previous alert's", () =>
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

    it.effect("returns every withheld alert at its place, however many follow", () =>
      Effect.gen(function* () {
        yield* TestClock.adjust("1 day")
        const userId = yield* newWallet(1005)
        yield* subscribe(userId)
        const log = yield* EventLogStore
        const begun = yield* DateTime.now
        const beginning = yield* log.position(userId, Option.none())
        yield* charge(userId, 0)
        const behindFirst = yield* log.position(userId, Option.none())
        yield* withheldAlert(userId)
        yield* withheldAlert(userId)
        const behindThird = yield* log.position(userId, Option.none())
        // A last one, caused by a charge
        yield* TestClock.adjust("1 second")
        yield* topUp(userId)
        yield* charge(userId, 0)

        const since = yield* log.position(userId, Option.some(begun))
        const times = (alerts: ReadonlyArray<EventRow>) =>
          alerts.map(({ createdAt }) => DateTime.toEpochMillis(createdAt))
        const all = yield* alertsAfter(userId, beginning)
        assert.lengthOf(all, 4)
        assert.deepStrictEqual(times(all), times(all).toSorted())
        for (const entries of [1, 2, 3, 4, 500]) {
          assert.deepStrictEqual(times(yield* alertsAfter(userId, since, entries)), times(all))
          const rest = yield* alertsAfter(userId, behindFirst, entries)
          assert.deepStrictEqual(times(rest), times(all.slice(1)), `${entries}`)
          const last = yield* alertsAfter(userId, behindThird, entries)
          assert.deepStrictEqual(times(last), times(all.slice(3)), `${entries}`)
        }
      })
    )

    it.effect("keeps the places of withheld alerts as long as their events", () =>
      Effect.gen(function* () {
        const userId = yield* newWallet(1005)
        yield* subscribe(userId)
        yield* charge(userId, 0)
        yield* withheldAlert(userId)
        const sql = yield* PgClient.PgClient
        const now = yield* DateTime.now
        const kept = Effect.fnUntraced(function* (seconds: number) {
          yield* (yield* PartitionStore).maintain(now, 0, DateTime.add(now, { seconds }))
          return yield* sql`SELECT created_at FROM withheld_alerts WHERE user_id = ${userId}`
        })
        assert.deepStrictEqual(yield* kept(-1), [{ createdAt: DateTime.toDateUtc(now) }])
        assert.deepStrictEqual(yield* kept(1), [])
      })
    )

    it.effect("keeps the events of a day as long as the deliveries that refer to them", () =>
      Effect.gen(function* () {
        const sql = yield* PgClient.PgClient
        const { maintain } = yield* PartitionStore
        const day = DateTime.makeUnsafe("1969-06-01T12:00:00Z")
        const over = DateTime.makeUnsafe("1969-06-03T00:00:00Z")
        const isKept = Effect.map(
          sql`SELECT to_regclass('events_19690601') IS NOT NULL AS kept`,
          ([row]) => row?.["kept"]
        )
        yield* maintain(day, 0, day)
        // As long as it exists, the deliveries of that day cannot be dropped
        yield* sql`CREATE VIEW reader AS SELECT * FROM deliveries_19690601`
        const refused = yield* Effect.ensuring(
          Effect.exit(maintain(day, 0, over)),
          Effect.ignore(sql`DROP VIEW reader`)
        )
        assert.isTrue(Exit.isFailure(refused))
        assert.isTrue(yield* isKept)
        yield* maintain(day, 0, over)
        assert.isFalse(yield* isKept)
      })
    )
  })
})
