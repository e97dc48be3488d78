import { assert, describe, it } from "@effect/vitest"
import { Cause, Effect, Exit, Fiber } from "effect"
import { HttpClient, HttpClientRequest, HttpClientResponse } from "effect/http"
import { TestClock } from "effect/testing"
import { bounded } from "../../../src/cli/Telemetry.ts"

const request = HttpClientRequest.post("http://localhost/v1/traces")

describe("an export to a collector", () => {
  it.effect("is abandoned after ten seconds, or at once while sixteen others are running", () =>
    Effect.gen(function* () {
      let asked = 0
      const client = bounded(
        HttpClient.make(() => {
          asked += 1
          return Effect.never
        })
      )
      const running = yield* Effect.forEach(Array.from({ length: 16 }), () =>
        Effect.forkChild(client.execute(request), { startImmediately: true })
      )
      assert.isTrue(Exit.isFailure(yield* Effect.exit(client.execute(request))))
      assert.strictEqual(asked, 16)
      yield* TestClock.adjust("9 seconds")
      assert.isUndefined(running[0]?.pollUnsafe())
      yield* TestClock.adjust("1 second")
      for (const fiber of running) {
        const exit = yield* Fiber.await(fiber)
        assert.isTrue(
          Exit.isFailure(exit) && !HttpClient.isTransientError(Cause.squash(exit.cause))
        )
      }
    })
  )

  it.effect("frees its slot when the collector has responded", () =>
    Effect.gen(function* () {
      const client = bounded(
        HttpClient.make((sent) =>
          Effect.succeed(HttpClientResponse.fromWeb(sent, new Response("{}")))
        )
      )
      for (let n = 0; n < 40; n += 1) {
        assert.strictEqual((yield* client.execute(request)).status, 200)
      }
    })
  )
})
