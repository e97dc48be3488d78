import { assert, describe, it } from "@effect/vitest"
import { Clock, Context, Effect, Exit, Fiber, Latch, Layer, Scope } from "effect"
import { SqlClient } from "effect/sql"
import { TestClock } from "effect/testing"
import { EndpointId } from "../../../src/domain/Ids.ts"
import { StoreUnavailable } from "../../../src/domain/Problem.ts"
import type { DeliveryStore } from "../../../src/webhooks/DeliveryStore.ts"
import { EndpointActors } from "../../../src/webhooks/EndpointActors.ts"
import { WebhookDispatcher } from "../../../src/webhooks/WebhookDispatcher.ts"
import { mockOutcome, WebhookSenderLog } from "../../../src/webhooks/WebhookSender.ts"
import { queueDeliveries } from "../../support/deliveries.ts"
import { eventually, layerGateway, makeUser } from "../../support/gateway.ts"

const hook = { url: "https://127.0.0.1/hook", events: ["task.created"] }

/** The delivery store with counters of its calls. */
const watched = () => {
  const asked = {
    scans: 0,
    /** The times in milliseconds at which a sender was opened, which first reads its sliding minute. */
    opened: [] as Array<number>,
    claims: 0,
    /** Claims and records in which no delivery was started. */
    idle: { claims: 0, records: 0 }
  }
  /** Two run at once: the first waits until the second has started. */
  const together = Latch.makeUnsafe()
  const deliveries = (live: DeliveryStore["Service"]): DeliveryStore["Service"] => ({
    ...live,
    due: (...of) => {
      asked.scans += 1
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
    "opens at least 1.5 s before its first delivery is due, and sends everything exactly on time",
    () =>
      Effect.gen(function* () {
        const log = yield* WebhookSenderLog
        const user = yield* makeUser()
        const endpoint = yield* user.call("POST", "/manage/v1/webhook-endpoints", hook)
        const due = 30_700
        yield* queueDeliveries(String(endpoint.json.id), 3, new Date(due))
        // The first turn comes after 200 ms
        for (let second = 0.2; second <= 25.2; second += 5) {
          const before = asked.scans
          yield* TestClock.setTime(second * 1000)
          yield* eventually(
            Effect.sync(() => asked.scans),
            (scans) => scans > before
          )
        }
        yield* eventually(
          Effect.sync(() => asked.claims),
          (claims) => claims > 0
        )
        assert.deepStrictEqual(asked.opened, [25_200], "once, and not during the idle time")
        yield* TestClock.setTime(due - 1)
        const before = asked.claims
        yield* (yield* EndpointActors).notify([EndpointId.make(String(endpoint.json.id))])
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
    "claims no more than its share of the places there, and more as places become free",
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
        // Now other endpoints send to that origin too
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
    "warms up with empty claims and records, on as many connections as later, before the first delivery is due",
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

/** Actors that record when they are opened, notified and ended; `open` may fail. */
const recorded = ({
  end = Effect.void,
  open = Effect.void
}: {
  readonly open?: Effect.Effect<void, StoreUnavailable>
  readonly end?: Effect.Effect<void>
} = {}) => {
  const log: Array<string> = []
  const note = (what: string, id: EndpointId) => Effect.sync(() => void log.push(`${what} ${id}`))
  const dispatcher = Layer.succeed(WebhookDispatcher, {
    open: (id) =>
      Effect.acquireRelease(Effect.andThen(note("opens", id), open), () =>
        Effect.andThen(end, note("ends", id))
      ).pipe(Effect.as({ deliver: note("delivers", id) }))
  })
  return { log, layer: Layer.provide(EndpointActors.layer, dispatcher) }
}

const one = EndpointId.make("whe_1")
const two = EndpointId.make("whe_2")

describe("the actors of endpoints", () => {
  it.effect(
    "are opened once, even by concurrent messages, and end a minute after the last message",
    () => {
      const { layer, log } = recorded()
      return Effect.gen(function* () {
        const actors = yield* EndpointActors
        yield* actors.notify([one, two, one])
        assert.sameMembers(
          log.splice(0),
          "opens whe_1,opens whe_2,delivers whe_1,delivers whe_2,delivers whe_1".split(",")
        )
        yield* TestClock.adjust("59 seconds")
        yield* actors.notify([one])
        yield* TestClock.adjust("59 seconds")
        assert.deepStrictEqual(log.splice(0), ["delivers whe_1", "ends whe_2"])
        assert.strictEqual(yield* actors.count, 1)
        yield* TestClock.adjust("2 seconds")
        assert.deepStrictEqual(log.splice(0), ["ends whe_1"])
        yield* actors.notify([one])
        assert.deepStrictEqual(log, ["opens whe_1", "delivers whe_1"])
      }).pipe(Effect.provide(layer))
    }
  )

  it.effect("are opened by the next message if they could not be opened", () => {
    let isAway = true
    const open = Effect.suspend(() =>
      isAway ? Effect.fail(new StoreUnavailable({ cause: "away" })) : Effect.void
    )
    const { layer, log } = recorded({ open })
    return Effect.gen(function* () {
      const actors = yield* EndpointActors
      yield* actors.notify([one])
      isAway = false
      yield* actors.notify([one])
      assert.deepStrictEqual(log, ["opens whe_1", "opens whe_1", "delivers whe_1"])
    }).pipe(Effect.provide(layer))
  })

  it.effect("all end at the same time with their process", () => {
    const { layer, log } = recorded({ end: Effect.sleep("1 second") })
    return Effect.gen(function* () {
      const scope = yield* Scope.make()
      const context = yield* Layer.buildWithScope(layer, scope)
      const ids = Array.from({ length: 100 }, (_, n) => EndpointId.make(`whe_${n}`))
      yield* Context.get(context, EndpointActors).notify(ids)
      const closing = yield* Effect.forkChild(Scope.close(scope, Exit.void))
      yield* TestClock.adjust("1 second")
      yield* Fiber.join(closing)
      assert.lengthOf(
        log.filter((it) => it.startsWith("ends")),
        100
      )
    })
  })
})
