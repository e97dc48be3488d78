import { assert, describe, it } from "@effect/vitest"
import { DateTime, Effect, Exit, Fiber, Latch, Scope } from "effect"
import { SqlClient } from "effect/sql"
import { EndpointId } from "../../../src/domain/Ids.ts"
import { StoreUnavailable } from "../../../src/domain/Problem.ts"
import type { DeliveryStore } from "../../../src/webhooks/DeliveryStore.ts"
import { WebhookDispatcher } from "../../../src/webhooks/WebhookDispatcher.ts"
import {
  mockOutcome,
  AttemptNotStarted,
  WebhookSenderLog
} from "../../../src/webhooks/WebhookSender.ts"
import { queueDeliveries } from "../../support/deliveries.ts"
import { advance, eventually, layerGateway, makeUser } from "../../support/gateway.ts"

const endpoints = "/manage/v1/webhook-endpoints"
const hook = { url: "https://127.0.0.1/hook", events: ["task.created"] }

/** An endpoint with one delivery that is due now. */
const begin = Effect.gen(function* () {
  const user = yield* makeUser()
  const { id } = (yield* user.call("POST", endpoints, hook)).json
  const test = yield* user.call("POST", `${endpoints}/${id}/test`)
  const delivery: string = test.json.delivery_id
  const log = Effect.map(
    user.call("GET", `/manage/v1/webhook-deliveries/${delivery}`),
    (answer) => answer.json
  )
  return { delivery, endpoint: String(id), log }
})

/** The first claim that takes something is committed, but its response never arrives. */
const losesAnswer = (live: DeliveryStore["Service"]): DeliveryStore["Service"] => {
  let isLost = false
  return {
    ...live,
    claim: (wanted) =>
      Effect.tap(live.claim(wanted), (claimed) => {
        if (isLost || claimed.length === 0) return Effect.void
        isLost = true
        return Effect.fail(new StoreUnavailable({ cause: "the connection broke" }))
      })
  }
}

describe("a store that is briefly unavailable", () => {
  it.effect(
    "returns a claim whose response was lost, and the delivery is sent within seconds",
    () =>
      Effect.gen(function* () {
        const sender = yield* WebhookSenderLog
        const { delivery, log } = yield* begin
        yield* advance("8 seconds", "500 millis")
        const [sent] = yield* eventually(sender.sent, (all) => all.length > 0)
        assert.strictEqual(sent?.request.deliveryId, delivery)
        const shown = yield* eventually(log, (now) => now.status === "succeeded")
        assert.strictEqual(shown.attempt_count, 1)
        assert.deepStrictEqual(
          shown.attempts.map((it: { readonly failure: string | null }) => it.failure),
          ["lost", null]
        )
        assert.strictEqual((yield* sender.sent).length, 1)
      }).pipe(Effect.provide(layerGateway({ deliveries: losesAnswer })))
  )

  it.effect(
    "lets no process treat another as dead before the other had time to write its heartbeat",
    () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        const { endpoint, log } = yield* begin
        yield* eventually(log, (now) => now.status === "succeeded")
        // Another process has a running attempt, and neither can write a heartbeat for 20 s
        const queued = sql`
          INSERT INTO delivery_queue (id, created_at, endpoint_id, due_at, seq, owner, claimed_at)
          SELECT id, created_at, endpoint_id, created_at, 1, 'proc_other', created_at
          FROM deliveries WHERE endpoint_id = ${endpoint}`
        yield* sql`INSERT INTO processes VALUES ('proc_other', timestamptz 'epoch', timestamptz 'epoch')`
        yield* queued
        const owner = Effect.map(
          sql`SELECT owner FROM delivery_queue`,
          (rows) => rows[0]?.["owner"]
        )
        yield* sql`ALTER TABLE processes RENAME TO processes_away`
        yield* advance("20 seconds", "2 seconds")
        yield* sql`ALTER TABLE processes_away RENAME TO processes`
        yield* advance("6 seconds", "500 millis")
        assert.strictEqual(yield* owner, "proc_other")
        const now = DateTime.toDateUtc(yield* DateTime.now)
        yield* sql`UPDATE processes SET heartbeat_at = ${now} WHERE id = 'proc_other'`
        yield* advance("8 seconds", "500 millis")
        assert.strictEqual(yield* owner, "proc_other")
        // After a longer time it counts as dead
        yield* advance("8 seconds", "500 millis")
        assert.notStrictEqual(yield* owner, "proc_other")
      }).pipe(
        Effect.provide(
          layerGateway({
            env: { DATABASE_URL: "postgres://localhost/shared" },
            webhook: () => Effect.succeed(mockOutcome(200))
          })
        )
      )
  )
})

/** Gets no slot this many times, and is then sent. */
const busyAtFirst = (times: number) => {
  let tries = 0
  return () =>
    Effect.suspend(() => {
      tries += 1
      return tries <= times
        ? Effect.fail(new AttemptNotStarted())
        : Effect.succeed(mockOutcome(200))
    })
}

describe("a claim that is not sent", () => {
  it.effect(
    "because there was no place at the origin is returned, uses and logs no attempt, and is sent when there is one",
    () =>
      Effect.gen(function* () {
        const { log } = yield* begin
        const shown = yield* eventually(log, (now) => now.status === "succeeded")
        assert.strictEqual(shown.attempt_count, 1)
        assert.deepStrictEqual(
          shown.attempts.map((it: { readonly failure: string | null }) => it.failure),
          [null]
        )
        assert.strictEqual((yield* (yield* WebhookSenderLog).sent).length, 8)
      }).pipe(Effect.provide(layerGateway({ webhook: busyAtFirst(7) })))
  )

  /** The first claim that takes something is committed, and returns when the test allows it. */
  const taken = Latch.makeUnsafe()
  const answered = Latch.makeUnsafe()
  const slowly = (live: DeliveryStore["Service"]): DeliveryStore["Service"] => ({
    ...live,
    claim: (wanted) =>
      Effect.tap(live.claim(wanted), (claimed) =>
        claimed.length === 0 ? Effect.void : Effect.andThen(taken.open, answered.await)
      )
  })
  it.effect("because its actor ended before the claim was answered is returned at once", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const dispatcher = yield* WebhookDispatcher
      const sender = yield* WebhookSenderLog
      const user = yield* makeUser()
      const { id } = (yield* user.call("POST", endpoints, hook)).json
      yield* queueDeliveries(id, 3, new Date(0))
      const owners = Effect.map(sql`SELECT owner FROM delivery_queue`, (rows) =>
        rows.map((row) => row["owner"])
      )
      const actor = yield* Scope.make()
      const endpointSender = yield* Scope.provide(dispatcher.open(EndpointId.make(id)), actor)
      yield* endpointSender.deliver
      yield* taken.await
      assert.notInclude(yield* owners, null)
      const ending = yield* Effect.forkChild(Scope.close(actor, Exit.void))
      yield* Effect.yieldNow
      yield* answered.open
      yield* Fiber.join(ending)
      assert.deepStrictEqual(yield* owners, [null, null, null])
      assert.deepStrictEqual(yield* sender.sent, [])
      // The next poll of the delivery scheduler opens a sender that sends them, once each
      yield* advance("5 seconds", "500 millis")
      yield* eventually(sender.sent, (all) => all.length === 3)
      const attempts = sql`SELECT failure FROM delivery_attempts`
      const logged = yield* eventually(attempts, (rows) => rows.length === 3)
      assert.deepStrictEqual(
        logged.map((row) => row["failure"]),
        [null, null, null]
      )
    }).pipe(Effect.provide(layerGateway({ deliveries: slowly })))
  )
})
