import { assert, describe, it } from "@effect/vitest"
import { Clock, Duration, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { TestClock } from "effect/testing"
import type { AttemptOutcome } from "../../../src/domain/Webhook.ts"
import type { WebhookRequest } from "../../../src/webhooks/WebhookSender.ts"
import { mockOutcome } from "../../../src/webhooks/WebhookSender.ts"
import {
  advance,
  eventually,
  layerGateway,
  longHeartbeat,
  makeUser
} from "../../support/gateway.ts"
import { startedDatabase } from "../../support/stores.ts"

const path = "/vendors/alibaba/v1/text-to-image-max/generation"
const hook = { url: "https://127.0.0.1/hook", events: ["task.created"] }

/** Records the second of each attempt, and responds with this status. */
const recorder = (status: (n: number) => number) => {
  const sent: Array<{ readonly second: number; readonly request: WebhookRequest }> = []
  const webhook = (request: WebhookRequest) =>
    Effect.map(Clock.currentTimeMillis, (now) => {
      sent.push({ second: now / 1000, request })
      return mockOutcome(status(sent.length))
    })
  return { sent, webhook, seconds: () => sent.map((it) => it.second) }
}

/** Advances the clock to shortly before each time, then past it. */
const advanceTo = (seconds: ReadonlyArray<number>) => {
  let at = 0
  return Effect.forEach(seconds, (second) => {
    const gap = second - at
    at = second + 2
    return gap <= 0
      ? advance("2 seconds", "500 millis")
      : Effect.andThen(
          advance(Duration.seconds(Math.max(0, gap - 1)), "60 seconds"),
          advance("3 seconds", "250 millis")
        )
  })
}

/** docs/reference/requirements.md#retries */
describe("retries", () => {
  const schedule = [0, 15, 75, 375, 2175, 5775]

  const dead = recorder(() => 500)
  it.effect(
    "give a dead endpoint six attempts at exact times, also after a restart, each with a new signature and the same delivery id and body; then the delivery is failed",
    () =>
      Effect.gen(function* () {
        const database = Layer.succeedContext(yield* Layer.build(startedDatabase))
        const life = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
          Effect.provide(
            effect,
            layerGateway({
              webhook: dead.webhook,
              database,
              heartbeatSeconds: longHeartbeat
            }),
            { local: true }
          )
        const lastSecond = schedule.at(-1)!
        const first = yield* life(
          Effect.gen(function* () {
            const user = yield* makeUser()
            const endpoint = yield* user.call("POST", "/manage/v1/webhook-endpoints", hook)
            assert.strictEqual(endpoint.status, 201, endpoint.text)
            yield* user.call("POST", path, { prompt: "x" })
            yield* eventually(Effect.sync(dead.seconds), (seconds) => seconds.length === 1)
            yield* advanceTo(schedule.slice(0, -1))
            assert.deepStrictEqual(dead.seconds(), schedule.slice(0, -1))
            return { secret: endpoint.json.secret, user }
          })
        )
        // Most of the last hour passes while no process runs
        yield* TestClock.setTime((lastSecond - 6) * 1000)
        yield* life(
          Effect.gen(function* () {
            yield* advance("5 seconds")
            assert.deepStrictEqual(dead.seconds(), schedule.slice(0, -1))
            yield* advance("2 seconds", "250 millis")
            assert.deepStrictEqual(dead.seconds(), schedule)
            const sql = yield* SqlClient.SqlClient
            const waiting = yield* sql`SELECT FROM delivery_queue`
            assert.isEmpty(waiting, "nothing waits for another attempt")
            const log = yield* first.user.call("GET", "/manage/v1/webhook-deliveries")
            const [delivery] = log.json.data
            const ended = [delivery.status, delivery.attempt_count]
            assert.deepStrictEqual(ended, ["failed", 6], log.text)
          })
        )
        const { request: sent } = dead.sent[0]!
        for (const { request, second } of dead.sent) {
          assert.strictEqual(request.deliveryId, sent.deliveryId)
          assert.deepStrictEqual(request.body, sent.body)
          assert.strictEqual(request.timestampSeconds, second)
          assert.strictEqual(request.secret, first.secret)
        }
      }),
    300_000
  )

  const tooLarge: AttemptOutcome = {
    ...mockOutcome(0),
    status: null,
    failure: "payload_too_large"
  }
  it.effect("are not made for a body that is too large, which fails the delivery at once", () =>
    Effect.gen(function* () {
      const user = yield* makeUser()
      yield* user.call("POST", "/manage/v1/webhook-endpoints", hook)
      yield* user.call("POST", path, { prompt: "x" })
      const log = Effect.map(user.call("GET", "/manage/v1/webhook-deliveries"), (it) => it.json)
      const { data } = yield* eventually(log, (it) => it.data[0]?.status === "failed")
      assert.strictEqual(data[0].attempt_count, 1)
      const shown = yield* user.call("GET", `/manage/v1/webhook-deliveries/${data[0].id}`)
      assert.strictEqual(shown.json.attempts[0].failure, "payload_too_large")
    }).pipe(Effect.provide(layerGateway({ webhook: () => Effect.succeed(tooLarge) })))
  )

  const late = recorder((n) => (n < 3 ? 503 : 204))
  it.effect("end after any 2xx", () =>
    Effect.gen(function* () {
      const user = yield* makeUser()
      yield* user.call("POST", "/manage/v1/webhook-endpoints", hook)
      yield* user.call("POST", path, { prompt: "x" })
      yield* eventually(Effect.sync(late.seconds), (seconds) => seconds.length === 1)
      yield* advanceTo(schedule.slice(0, 3))
      assert.deepStrictEqual(late.seconds(), [0, 15, 75])
      const sql = yield* SqlClient.SqlClient
      const waiting = sql`SELECT FROM delivery_queue`
      assert.isEmpty(yield* eventually(waiting, (rows) => rows.length === 0))
    }).pipe(Effect.provide(layerGateway({ webhook: late.webhook })))
  )
})
