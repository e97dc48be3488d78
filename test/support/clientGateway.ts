import { Clock, Effect, Fiber } from "effect"
import { GatewayClient } from "../../src/client/index.ts"
import type { ClientOptions } from "../../src/client/index.ts"
import { TestGateway } from "../../src/testing/index.ts"
import { pause } from "./until.ts"

/**
 * Advances the clock until the work is done. Before each step, the gateway finishes everything that it can do without
 * it.
 */
export const whileTimePasses = <A, E, R>(work: Effect.Effect<A, E, R>) =>
  Effect.gen(function* () {
    const { advance } = yield* TestGateway
    const fiber = yield* Effect.forkChild(work)
    yield* advance(0)
    while (fiber.pollUnsafe() === undefined) {
      yield* advance("1 second")
      // A short real wait, in which sockets make progress
      yield* Effect.promise(() => pause(2))
    }
    return yield* Fiber.join(fiber)
  })

/** The result of a promise while the clock advances. A rejection becomes the error. */
export const settled = <A>(work: () => Promise<A>) =>
  whileTimePasses(
    Effect.callback<A, unknown>((resume) => {
      work().then(
        (value) => resume(Effect.succeed(value)),
        (error) => resume(Effect.fail(error))
      )
    })
  )

/** The `fetch` of the gateway in this process, with the signature of the global one. */
export const gatewayFetch = Effect.gen(function* () {
  const { fetch } = yield* TestGateway
  const context = yield* Effect.context<never>()
  return (url: string, init?: RequestInit) => Effect.runPromiseWith(context)(fetch(url, init))
})

/** Client options for the gateway in this process, its user's key and the test's clock. */
export const clientOptions = Effect.gen(function* () {
  const { key } = yield* TestGateway
  const clock = yield* Clock.Clock
  const context = yield* Effect.context<never>()
  return {
    baseUrl: "http://gateway.test",
    apiKey: key,
    fetch: yield* gatewayFetch,
    clock: {
      now: () => clock.currentTimeMillisUnsafe(),
      sleep: (milliseconds, signal) =>
        Effect.runPromiseWith(context)(Effect.sleep(milliseconds), { signal })
    }
  } satisfies ClientOptions
})

export const testClient = Effect.map(clientOptions, (options) => new GatewayClient(options))
