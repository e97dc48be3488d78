import { assert, describe, it } from "@effect/vitest"
import { Clock, Effect, Exit, Latch, Scope } from "effect"
import { SqlClient } from "effect/sql"
import { TestClock } from "effect/testing"
import { EndpointId } from "../../../src/domain/Ids.ts"
import type { DeliveryStore } from "../../../src/webhooks/DeliveryStore.ts"
import { LocalSenders } from "../../../src/webhooks/LocalSenders.ts"
import { mockOutcome, WebhookSenderLog } from "../../../src/webhooks/WebhookSender.ts"
import { queueDeliveries } from "../../support/deliveries.ts"
import { eventually, layerGateway, makeUser } from "../../support/gateway.ts"

const hook = { url: "https://127.0.0.1/hook", events: ["task.created"] }

/** The delivery store, and the number of its calls. */
const watched = () => {
  const asked = {
    looks: 0,
    /** Milliseconds at which a sender was opened: it reads its sliding minute first. */
    opened: [] as Array<number>,
    claims: 0,
    /** Claims and records without deliveries that were started. */
    idle: { claims: 0, records: 0 }
  }
  /** Two at once: the first waits until the second has started. */
  const together = Latch.makeUnsafe()
  const deliveries = (live: DeliveryStore["Service"]): DeliveryStore["Service"] => ({
    ...live,
    due: (...of) => {
      asked.looks += 1
      return live.due(...of)
    },
    endedSince: (...of) =>
      Effect.flatMap(Clock.currentTimeMillis, (now) => {
        asked.opened.push(now)
        return live.endedSince(...of)
      }),
    claim: (of) => {
      if (of.wanted.length > 0) {
        asked.claims += 1
        return live.claim(of)
      }
      asked.idle.claims += 1
      if (asked.idle.claims === 2) together.openUnsafe()
      return Effect.andThen(together.await, live.claim(of))
    },
    record: (all) => {
      if (all.length > 0) return live.record(all)
      asked.idle.records += 1
      return live.record(all)
    }
  })
  return { asked, deliveries }
}

describe("the sender of an endpoint", () => {
  const { asked, deliveries } = watched()
  it.effect(
    "is open at least 1.5 s before its first delivery falls due, sends nothing before that and everything on time",
    () =>
      Effect.gen(function* () {
        const log = yield* WebhookSenderLog
        const user = yield* makeUser()
        const endpoint = yield* user.call("POST", "/manage/v1/webhook-endpoints", hook)
        const due = 30_500
        yield* queueDeliveries(String(endpoint.json.id), 3, new Date(due))
        yield* eventually(
          Effect.sync(() => asked.looks),
          (looks) => looks > 0
        )
        for (let second = 5; second <= 25; second += 5) {
          const before = asked.looks
          yield* TestClock.setTime(second * 1000)
          yield* eventually(
            Effect.sync(() => asked.looks),
            (looks) => looks > before
          )
        }
        yield* eventually(
          Effect.sync(() => asked.claims),
          (claims) => claims > 0
        )
        assert.deepStrictEqual(asked.opened, [25_000], "once, and not during the idle time before")
        yield* TestClock.setTime(due - 1)
        const before = asked.claims
        yield* (yield* LocalSenders).notify(EndpointId.make(String(endpoint.json.id)))
        yield* eventually(
          Effect.sync(() => asked.claims),
          (claims) => claims > before
        )
        assert.deepStrictEqual(yield* log.sent, [])
        yield* TestClock.setTime(due)
        const sent = yield* eventually(log.sent, (all) => all.length === 3)
        assert.deepStrictEqual(
          sent.map((it) => it.atMillis),
          [due, due, due]
        )
        assert.lengthOf(asked.opened, 1)
      }).pipe(Effect.provide(layerGateway({ deliveries })))
  )
})

describe("a sender whose origin is busy", () => {
  const answers: Array<Latch.Latch> = []
  const webhook = () =>
    Effect.suspend(() => {
      const answer = Latch.makeUnsafe()
      answers.push(answer)
      return Effect.as(answer.await, mockOutcome(200))
    })
  let share = 3
  it.effect(
    "claims no more than its share of the places there, and the rest as places become free",
    () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        const log = yield* WebhookSenderLog
        const user = yield* makeUser()
        const endpoint = yield* user.call("POST", "/manage/v1/webhook-endpoints", hook)
        yield* queueDeliveries(String(endpoint.json.id), 10, new Date(0))
        yield* TestClock.adjust("5 seconds")
        yield* eventually(log.sent, (all) => all.length === 3)
        const left = sql`SELECT owner FROM delivery_queue WHERE owner IS NULL`
        assert.lengthOf(yield* left, 7)
        // Other endpoints send to that origin now
        share = 2
        yield* answers[0]!.open
        yield* answers[1]!.open
        yield* eventually(log.sent, (all) => all.length === 4)
        assert.lengthOf(yield* left, 6)
        share = 16
        yield* answers[2]!.open
        yield* eventually(log.sent, (all) => all.length === 10)
        assert.lengthOf(yield* left, 0)
        for (const answer of answers) yield* answer.open
        yield* eventually(sql`SELECT id FROM delivery_queue`, (rows) => rows.length === 0)
      }).pipe(Effect.provide(layerGateway({ webhook, fairShare: () => share })))
  )
})

describe("a process that has started", () => {
  const { asked, deliveries } = watched()
  it.effect(
    "has claimed and recorded nothing, on as many connections at once as later, before the first is due",
    () =>
      Effect.gen(function* () {
        yield* eventually(
          Effect.sync(() => asked.idle),
          ({ claims, records }) => claims === 2 && records === 2
        )
        assert.strictEqual(asked.claims, 0)
      }).pipe(Effect.provide(layerGateway({ deliveries })))
  )
})

describe("local senders", () => {
  it.effect(
    "pass a message to their actor at most every 10 s, often enough that it does not end",
    () =>
      Effect.gen(function* () {
        const senders = yield* LocalSenders
        const id = EndpointId.make("whe_1")
        let calls = 0
        const sender = Effect.gen(function* () {
          const message = yield* senders.register(
            id,
            Effect.sync(() => void (calls += 1))
          )
          assert.isFalse(yield* senders.notify(id), "no message yet")
          yield* message
          yield* TestClock.adjust("9999 millis")
          assert.isTrue(yield* senders.notify(id))
          assert.strictEqual(calls, 2)
          yield* TestClock.adjust("1 millis")
          assert.isFalse(yield* senders.notify(id))
          yield* message
          assert.isTrue(yield* senders.notify(id))
          assert.strictEqual(calls, 4)
        })
        yield* Effect.scoped(sender)
        assert.isFalse(yield* senders.notify(id), "it is closed")
        assert.strictEqual(calls, 4)
      }).pipe(Effect.provide(LocalSenders.layer))
  )

  it.effect("that were opened again are not closed with the one before", () =>
    Effect.gen(function* () {
      const senders = yield* LocalSenders
      const id = EndpointId.make("whe_1")
      const before = yield* Scope.make()
      yield* yield* Scope.provide(senders.register(id, Effect.void), before)
      const message = yield* senders.register(id, Effect.void)
      yield* message
      yield* Scope.close(before, Exit.void)
      assert.isTrue(yield* senders.notify(id))
    }).pipe(Effect.scoped, Effect.provide(LocalSenders.layer))
  )

  it.effect("receive a message soon after the clock was set back", () =>
    Effect.gen(function* () {
      const senders = yield* LocalSenders
      const id = EndpointId.make("whe_1")
      yield* TestClock.setTime(60_000)
      yield* yield* senders.register(id, Effect.void)
      assert.isTrue(yield* senders.notify(id))
      yield* TestClock.setTime(0)
      assert.isFalse(yield* senders.notify(id))
    }).pipe(Effect.scoped, Effect.provide(LocalSenders.layer))
  )
})
