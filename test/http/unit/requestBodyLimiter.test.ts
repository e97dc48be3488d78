import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Fiber, Layer } from "effect"
import { HttpServerRequest } from "effect/http"
import { AppConfig } from "../../../src/config/Config.ts"
import { RequestBodyLimiter } from "../../../src/http/server/RequestBodyLimiter.ts"

const mebi = 1024 * 1024
const layer = RequestBodyLimiter.layer.pipe(
  Layer.provide(AppConfig.layerOf({ MAX_BODY_BYTES: String(16 * mebi) })),
  Layer.orDie
)

const request = (headers: Record<string, string>) =>
  HttpServerRequest.fromWeb(new Request("http://gateway.test/", { headers }))
const sized = (bytes: number) => request({ "content-length": String(bytes) })
const chunked = request({ "transfer-encoding": "chunked" })

/** How many of the requests are admitted at once; in the end all are. */
const together = (
  requests: ReadonlyArray<HttpServerRequest.HttpServerRequest>,
  callerOf = (index: number) => `user ${index}`
) =>
  Effect.gen(function* () {
    const limiter = yield* RequestBodyLimiter
    const gate = yield* Deferred.make<void>()
    let inside = 0
    const fibers = yield* Effect.forEach(requests, (it, index) =>
      Effect.forkChild(
        limiter.within(
          it,
          callerOf(index)
        )(
          Effect.andThen(
            Effect.sync(() => (inside += 1)),
            Deferred.await(gate)
          )
        )
      )
    )
    for (let yields = 0; yields < 50; yields += 1) yield* Effect.yieldNow
    const first = inside
    yield* Deferred.succeed(gate, undefined)
    yield* Fiber.joinAll(fibers)
    assert.strictEqual(inside, requests.length)
    return first
  }).pipe(Effect.provide(layer))

const times = <A>(count: number, value: A) => Array.from({ length: count }, () => value)

describe("capacity for request bodies", () => {
  it.effect("four of the largest are in memory at once", () =>
    Effect.gen(function* () {
      assert.strictEqual(yield* together(times(20, sized(16 * mebi))), 4)
    })
  )

  it.effect("as many smaller ones as use the same capacity, small ones always", () =>
    Effect.gen(function* () {
      assert.strictEqual(yield* together(times(20, sized(8 * mebi))), 8)
      assert.strictEqual(yield* together([...times(4, sized(16 * mebi)), sized(mebi)]), 5)
      assert.strictEqual(yield* together([...times(4, sized(16 * mebi)), request({})]), 5)
      assert.strictEqual(yield* together(times(100, sized(mebi))), 100)
    })
  )

  it.effect("one user has half of the capacity, and the rest is for others", () =>
    Effect.gen(function* () {
      const one = () => "one"
      assert.strictEqual(yield* together(times(20, sized(16 * mebi)), one), 2)
      assert.strictEqual(yield* together(times(50, chunked), one), 16)
      const mostly = (index: number) => (index < 20 ? "one" : `${index}`)
      assert.strictEqual(yield* together(times(25, sized(16 * mebi)), mostly), 4)
    })
  )

  it.effect("one without a length counts as an eighth of the largest", () =>
    Effect.gen(function* () {
      assert.strictEqual(yield* together(times(50, chunked)), 32)
      assert.strictEqual(
        yield* together([...times(3, sized(16 * mebi)), ...times(20, chunked)]),
        11
      )
    })
  )
})
