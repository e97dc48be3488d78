import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Fiber, Scope } from "effect"
import { SqlClient } from "effect/sql"
import { EndpointId } from "../../../src/domain/Ids.ts"
import { StoreUnavailable } from "../../../src/domain/Problem.ts"
import type { DeliveryStore } from "../../../src/webhooks/DeliveryStore.ts"
import { WebhookDispatcher } from "../../../src/webhooks/WebhookDispatcher.ts"
import { queueDeliveries } from "../../support/deliveries.ts"
import { advance, eventually, layerGateway, makeUser } from "../../support/gateway.ts"
import { startReceiver } from "../../support/webhookReceiver.ts"

/** A receiver that responds only when the test allows it. */
const silent = Effect.gen(function* () {
  const answers = Promise.withResolvers<number>()
  const receiver = yield* Effect.acquireDisposable(
    Effect.promise(() => startReceiver(() => answers.promise))
  )
  return { receiver, answer: Effect.sync(() => answers.resolve(200)) }
})

type Receiver = Effect.Success<typeof silent>["receiver"]

/** A gateway with four slots per origin. */
const gateway = (
  { ca }: Receiver,
  deliveries: (live: DeliveryStore["Service"]) => DeliveryStore["Service"] = (live) => live
) => layerGateway({ sender: { ca, connectionsPerOriginMax: 4 }, deliveries })

/**
 * Two deliveries of another endpoint have reached the receiver. Of the four claimed deliveries of this one, two have,
 * and two wait for a slot.
 */
const crowded = Effect.fnUntraced(function* ({ received, url }: Receiver) {
  const sql = yield* SqlClient.SqlClient
  const dispatcher = yield* WebhookDispatcher
  // The delivery scheduler has scanned, and scans again in 5 s
  yield* advance("300 millis", "100 millis")
  const user = yield* makeUser()
  const open = Effect.fnUntraced(function* (path: string, count: number) {
    const hook = { url: `${url}/${path}`, events: ["task.created"] }
    const { id } = (yield* user.call("POST", "/manage/v1/webhook-endpoints", hook)).json
    const deliveries = yield* queueDeliveries(id, count, new Date(0))
    const actor = yield* Scope.make()
    const endpointSender = yield* Scope.provide(dispatcher.open(EndpointId.make(id)), actor)
    yield* endpointSender.deliver
    return { actor, deliveries, id: String(id) }
  })
  const arrived = (count: number) =>
    eventually(
      Effect.sync(() => received.length),
      (length) => length === count
    )
  yield* open("other", 2)
  yield* arrived(2)
  const { actor, deliveries, id } = yield* open("this", 4)
  yield* arrived(4)
  const queue = sql`SELECT owner FROM delivery_queue WHERE endpoint_id = ${id}`
  const owned = Effect.map(queue, (rows) => rows.filter(({ owner }) => owner !== null).length)
  assert.strictEqual(yield* owned, 4)
  const attempts = sql`
    SELECT delivery_id, failure FROM delivery_attempts
    WHERE delivery_id = ANY(${deliveries}::text[])`
  const begun = received.map(({ deliveryId }) => deliveryId).filter((it) => deliveries.includes(it))
  assert.strictEqual(begun.length, 2)
  return { actor, attempts, begun, owned }
})

describe("an attempt that waits for a place at its origin while its actor ends", () => {
  it.effect(
    "is returned as if it had never been claimed, and only started attempts are logged",
    () =>
      Effect.gen(function* () {
        const { answer, receiver } = yield* silent
        yield* Effect.gen(function* () {
          const { actor, attempts, begun, owned } = yield* crowded(receiver)
          yield* Scope.close(actor, Exit.void)
          assert.strictEqual(yield* owned, 0)
          const lost = yield* attempts
          assert.sameMembers(
            lost.map((row) => String(row["deliveryId"])),
            begun
          )
          assert.deepStrictEqual(
            lost.map((row) => row["failure"]),
            ["lost", "lost"]
          )
          // The next poll of the delivery scheduler opens a sender that sends them
          yield* answer
          yield* advance("5 seconds", "500 millis")
          const all = yield* eventually(attempts, (rows) => rows.length === 6)
          const ofOthers = all.filter((row) => !begun.includes(String(row["deliveryId"])))
          assert.deepStrictEqual(
            ofOthers.map((row) => row["failure"]),
            [null, null]
          )
        }).pipe(Effect.provide(gateway(receiver)))
      }).pipe(Effect.scoped)
  )

  it.effect("delays that end by at most three seconds while the store is unavailable", () =>
    Effect.gen(function* () {
      const { receiver } = yield* silent
      const away = (live: DeliveryStore["Service"]): DeliveryStore["Service"] => ({
        ...live,
        releaseClaims: () => Effect.fail(new StoreUnavailable({ cause: "it is away" }))
      })
      yield* Effect.gen(function* () {
        const { actor, attempts, owned } = yield* crowded(receiver)
        const ending = yield* Effect.forkChild(Scope.close(actor, Exit.void))
        yield* advance("2900 millis", "100 millis")
        assert.isUndefined(ending.pollUnsafe())
        yield* advance("100 millis", "100 millis")
        yield* Fiber.join(ending)
        assert.strictEqual((yield* attempts).length, 2)
        // The rescuer frees what was not released
        assert.strictEqual(yield* owned, 2)
      }).pipe(Effect.provide(gateway(receiver, away)))
    }).pipe(Effect.scoped)
  )
})
