import { assert, describe, it } from "@effect/vitest"
import { DateTime, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { TestClock } from "effect/testing"
import type { EndpointId } from "../../../src/domain/Ids.ts"
import type { DeliveryStore } from "../../../src/webhooks/DeliveryStore.ts"
import { EndpointActors } from "../../../src/webhooks/EndpointActors.ts"
import { mockOutcome, WebhookSenderLog } from "../../../src/webhooks/WebhookSender.ts"
import type { WebhookRequest } from "../../../src/webhooks/WebhookSender.ts"
import { mostWithin, queueDeliveries } from "../../support/deliveries.ts"
import { eventually, layerGateway, makeUser } from "../../support/gateway.ts"
import { startedDatabase } from "../../support/stores.ts"

const endpoints = "/manage/v1/webhook-endpoints"
const flood = 3000
const perMinute = 600
const minute = 60_000

const makeEndpoint = Effect.fnUntraced(function* (
  user: Effect.Success<ReturnType<typeof makeUser>>,
  url: string
) {
  const answer = yield* user.call("POST", endpoints, { url, events: ["task.created"] })
  assert.strictEqual(answer.status, 201, answer.text)
  return String(answer.json.id)
})

/** Waits until no attempt is running, so that everything sent is recorded. */
const settled = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* eventually(
    sql`SELECT 1 FROM delivery_queue WHERE owner IS NOT NULL LIMIT 1`,
    (rows) => rows.length === 0
  )
})

/** What was sent to this path so far: times and deliveries. */
const sentTo = (path: string) =>
  Effect.flatMap(WebhookSenderLog, (log) =>
    Effect.map(log.sent, (all) =>
      all
        .filter((it) => it.request.url.endsWith(path))
        .map((it) => ({ at: it.atMillis, id: it.request.deliveryId }))
    )
  )

const atTime = (millis: number) => TestClock.setTime(millis)

/** Every fifth delivery of the flood fails once. */
const failOnce = () => {
  const known = new Set<string>()
  return (request: WebhookRequest) =>
    Effect.sync(() => {
      if (known.has(request.deliveryId)) return mockOutcome(200)
      known.add(request.deliveryId)
      const isFailing = request.url.endsWith("/beside") || known.size % 5 === 0
      return mockOutcome(isFailing ? 500 : 200)
    })
}

/** docs/reference/webhooks.md#rate-limit */
describe("a flood of 3,000 events to one endpoint", () => {
  it.effect(
    "is sent at exactly 600 in every sliding minute, retries included; waiting uses no attempt, and no other endpoint is late",
    () =>
      Effect.gen(function* () {
        const user = yield* makeUser()
        const flooded = yield* makeEndpoint(user, "https://127.0.0.1/flooded")
        const beside = yield* makeEndpoint(user, "https://127.0.0.1/beside")
        yield* queueDeliveries(flooded, flood, new Date(5000))
        const reaches = Effect.fnUntraced(function* (total: number) {
          yield* eventually(sentTo("/flooded"), (all) => all.length >= total)
          yield* settled
          assert.strictEqual((yield* sentTo("/flooded")).length, total)
        })
        /** Meanwhile an event at another endpoint is sent at once and, after a refusal, again after exactly 15 s. */
        const besides = Effect.fnUntraced(function* (at: number) {
          yield* atTime(at)
          const answer = yield* user.call("POST", `${endpoints}/${beside}/test`)
          const id: string = answer.json.delivery_id
          const mine = Effect.map(sentTo("/beside"), (all) => all.filter((it) => it.id === id))
          yield* eventually(mine, (all) => all.length === 1)
          yield* settled
          yield* atTime(at + 15_000)
          const both = yield* eventually(mine, (all) => all.length === 2)
          assert.deepStrictEqual(
            both.map((it) => it.at),
            [at, at + 15_000]
          )
          yield* settled
        })

        yield* atTime(5000)
        yield* reaches(perMinute)
        const minutes = (flood + flood / 5) / perMinute
        for (let n = 1; n < minutes; n += 1) {
          const next = 5000 + n * minute
          const sent = n * perMinute
          yield* besides(next - 40_000)
          yield* atTime(next - 1)
          yield* settled
          assert.strictEqual((yield* sentTo("/flooded")).length, sent, "none before its time")
          yield* atTime(next)
          yield* reaches(sent + perMinute)
        }
        const all = yield* sentTo("/flooded")
        const times = all.map((it) => it.at)
        assert.strictEqual(mostWithin(times, minute), perMinute)
        assert.strictEqual(new Set(all.map((it) => it.id)).size, flood)
        const sql = yield* SqlClient.SqlClient
        const log = yield* sql`
          SELECT d.status, d.attempts, count(*)::int AS n FROM deliveries d
          WHERE d.endpoint_id = ${flooded} GROUP BY 1, 2 ORDER BY 2`
        assert.deepStrictEqual(
          log.map((row) => [row["status"], row["attempts"], row["n"]]),
          [
            ["succeeded", 1, flood - flood / 5],
            ["succeeded", 2, flood / 5]
          ]
        )
        const [attempts] = yield* sql`
          SELECT count(*)::int AS n, count(*) FILTER (WHERE failure = 'lost')::int AS lost
          FROM delivery_attempts WHERE endpoint_id = ${flooded}`
        assert.deepStrictEqual({ ...attempts }, { n: flood + flood / 5, lost: 0 })
      }).pipe(Effect.provide(layerGateway({ webhook: failOnce() }))),
    180_000
  )
})

describe("two processes on one store", () => {
  /** Two processes on one store; `asks` counts the claims of each, and a process in `held` gets nothing. */
  const processes = Effect.gen(function* () {
    const database = Layer.succeedContext(yield* Layer.build(startedDatabase))
    /** The send times of both. */
    const sent: Array<number> = []
    const held = new Set<string>()
    const asks = new Map<string, number>()
    /** Processes with an open sender, which has read the log before. */
    const opened = new Set<string>()
    const actors = new Set<EndpointActors["Service"]>()
    const alongside = (name: string) => {
      const webhook = () =>
        Effect.map(DateTime.now, (now) => {
          sent.push(DateTime.toEpochMillis(now))
          return mockOutcome(200)
        })
      const deliveries = (live: DeliveryStore["Service"]): DeliveryStore["Service"] => ({
        ...live,
        endedSince: (...of) =>
          Effect.tap(live.endedSince(...of), () => Effect.sync(() => opened.add(name))),
        claim: (of) => {
          if (held.has(name)) return Effect.succeed([])
          if (of.wanted.length > 0) asks.set(name, (asks.get(name) ?? 0) + 1)
          return live.claim(of)
        }
      })
      // The variable says that the store is shared, so that neither forgets the other
      const env = { DATABASE_URL: "postgres://localhost/shared" }
      const joins = Effect.acquireRelease(
        Effect.tap(EndpointActors, (one) => Effect.sync(() => actors.add(one))),
        (one) => Effect.sync(() => actors.delete(one))
      )
      return <A, E, R>(run: Effect.Effect<A, E, R>) =>
        Effect.andThen(joins, run).pipe(
          Effect.scoped,
          Effect.provide(layerGateway({ database, deliveries, env, webhook }), { local: true })
        )
    }
    const reaches = (total: number) =>
      eventually(
        Effect.sync(() => sent.length),
        (n) => n >= total
      )
    /** Waits until the process has claimed again and has the result. */
    const asksAgain = Effect.fnUntraced(function* (name: string, before: number) {
      yield* eventually(
        Effect.sync(() => asks.get(name) ?? 0),
        (n) => n > before
      )
      yield* settled
    })
    /** Advances the clock to this time and notifies both each second. */
    const toTime = Effect.fnUntraced(function* (millis: number) {
      const sql = yield* SqlClient.SqlClient
      while ((yield* DateTime.now).epochMilliseconds < millis) {
        yield* TestClock.adjust(1000)
        const [row] = yield* sql<{ id: EndpointId }>`SELECT id FROM webhook_endpoints`
        for (const { notify } of actors) yield* notify([row!.id])
        yield* settled
      }
    })
    return { alongside, asks, asksAgain, held, opened, reaches, sent, toTime }
  })

  const flooded = Effect.gen(function* () {
    const endpoint = yield* makeEndpoint(yield* makeUser(), "https://127.0.0.1/flooded")
    yield* queueDeliveries(endpoint, 1500, new Date(0))
  })

  it.effect(
    "send at most 600 in any sliding minute together, also after one of them has ended",
    () =>
      Effect.gen(function* () {
        const { alongside, reaches, sent, toTime } = yield* processes
        yield* Effect.gen(function* () {
          yield* Effect.gen(function* () {
            yield* flooded
            yield* toTime(5000)
            yield* reaches(perMinute)
            // The process that claims first may send all of a minute
            yield* toTime(sent[0]! + 59_000)
            assert.strictEqual(sent.length, perMinute)
            yield* toTime(70_000)
            yield* reaches(2 * perMinute)
          }).pipe(alongside("ends"))
          yield* toTime(sent[perMinute]! + 59_000)
          assert.strictEqual(sent.length, 2 * perMinute)
          yield* toTime(140_000)
          yield* reaches(1500)
        }).pipe(alongside("stays"))
        assert.strictEqual(sent.length, 1500)
        assert.isAtMost(mostWithin(sent, minute), perMinute)
      }),
    180_000
  )

  it.effect(
    "count each other's attempts, while the other runs and after it has ended",
    () =>
      Effect.gen(function* () {
        const { alongside, asks, asksAgain, held, opened, reaches, sent, toTime } = yield* processes
        held.add("stays").add("ends")
        yield* Effect.gen(function* () {
          yield* Effect.gen(function* () {
            yield* flooded
            yield* toTime(5000)
            yield* eventually(
              Effect.sync(() => opened.size),
              (n) => n === 2
            )
            held.delete("ends")
            yield* toTime(10_000)
            yield* reaches(perMinute)
            yield* settled
            assert.isUndefined(asks.get("stays"), "the other process sent all")
            held.delete("stays")
            yield* toTime(sent[0]! + 20_000)
            yield* asksAgain("stays", 0)
            assert.strictEqual(sent.length, perMinute)
          }).pipe(alongside("ends"))
          const before = asks.get("stays")!
          yield* toTime(sent[0]! + 59_000)
          yield* asksAgain("stays", before)
          assert.strictEqual(sent.length, perMinute, "the other's attempts still count")
          yield* toTime(sent[perMinute - 1]! + 65_000)
          yield* reaches(2 * perMinute)
          assert.strictEqual(sent.length, 2 * perMinute)
        }).pipe(alongside("stays"))
        assert.isAtMost(mostWithin(sent, minute), perMinute)
      }),
    180_000
  )
})
