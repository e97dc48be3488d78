import { assert, layer } from "@effect/vitest"
import { Deferred, Effect, Fiber, Layer } from "effect"
import * as Gateway from "../../src/Gateway.ts"
import { ProcessStore } from "../../src/process/heartbeat/ProcessStore.ts"
import { advance, callWith, eventually, layerGateway } from "../support/gateway.ts"

/** docs/reference/http.md#service-routes */

let pings = 0
const answered = Deferred.makeUnsafe<void>()

const stores = Layer.effect(
  ProcessStore,
  Effect.map(ProcessStore, (live) => ({
    ...live,
    ping: Effect.suspend(() => {
      pings += 1
      return Effect.andThen(Deferred.await(answered), live.ping)
    })
  }))
).pipe(Layer.provideMerge(Gateway.stores))

layer(layerGateway({ stores }), { timeout: "60 seconds" })("readiness", (it) => {
  it.effect("concurrent probes share one statement, even if one of them disconnects", () =>
    Effect.gen(function* () {
      const probe = callWith(undefined)("GET", "/readyz")
      const first = yield* Effect.forkChild(probe)
      const counted = Effect.sync(() => pings)
      yield* eventually(counted, (count) => count > 0)
      const others = yield* Effect.forkChild(
        Effect.all(
          Array.from({ length: 20 }, () => probe),
          { concurrency: "unbounded" }
        )
      )
      yield* advance("20 millis", "1 millis")
      yield* Fiber.interrupt(first)
      yield* Deferred.succeed(answered, undefined)
      for (const { status } of yield* Fiber.join(others)) assert.strictEqual(status, 200)
      assert.strictEqual(pings, 1)
      assert.strictEqual((yield* probe).status, 200)
      assert.strictEqual(pings, 2)
    })
  )
})
