import { assert, layer } from "@effect/vitest"
import { Clock, Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"
import { GatewayClient } from "../../../src/client/index.ts"
import { Gateway, MockVendor, TestGateway } from "../../../src/index.ts"

/** Moves the clock until the promise has settled. */
const whileTimePasses = <A>(work: () => Promise<A>) =>
  Effect.gen(function* () {
    const fiber = yield* Effect.forkChild(Effect.tryPromise({ try: work, catch: (error) => error }))
    while (fiber.pollUnsafe() === undefined) {
      yield* TestClock.adjust("1 second")
      yield* Effect.promise(() => new Promise((resolve) => setTimeout(resolve, 2)))
    }
    return yield* Fiber.join(fiber)
  })

const clientOf = Effect.gen(function* () {
  const { fetch, key } = yield* TestGateway
  const clock = yield* Clock.Clock
  const context = yield* Effect.context<never>()
  return new GatewayClient({
    baseUrl: "http://gateway.test",
    apiKey: key,
    fetch: (url, init) => Effect.runPromiseWith(context)(fetch(url, init)),
    clock: {
      now: () => clock.currentTimeMillisUnsafe(),
      sleep: (ms, signal) => Effect.runPromiseWith(context)(Effect.sleep(ms), { signal })
    }
  })
})

const gateway = Gateway.layerTest({ vendor: [MockVendor.result("10 seconds")] })

layer(gateway, { timeout: "1 minute" })("the client", (it) => {
  it.effect("runs a task", () =>
    Effect.gen(function* () {
      const client = yield* clientOf
      const seen: Array<string> = []
      const task = yield* whileTimePasses(() =>
        client.tasks.run(
          "text-to-image-max",
          { prompt: "A lighthouse" },
          { onProgress: ({ status }) => seen.push(status) }
        )
      )
      assert.deepStrictEqual(seen, ["pending", "processing", "completed"])
      assert.match(task.images[0]!, /^http:\/\/gateway\.test\/artifacts\//u)
    })
  )
})
