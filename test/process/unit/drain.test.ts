import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Fiber } from "effect"
import { Drain } from "../../../src/process/Drain.ts"

const withDrain = <A, E>(body: (drain: Drain["Service"]) => Effect.Effect<A, E>) =>
  Effect.flatMap(Drain, body).pipe(Effect.provide(Drain.layer))

describe("a drain", () => {
  it.effect("begins once, and waits for what is held", () =>
    withDrain((drain) =>
      Effect.gen(function* () {
        const answer = yield* Deferred.make<void>()
        const submit = yield* Effect.forkChild(drain.hold("submit")(Deferred.await(answer)))
        yield* Effect.yieldNow
        assert.isFalse(drain.isDraining())
        yield* drain.begin
        yield* drain.begin
        yield* drain.begun
        assert.isTrue(drain.isDraining())
        const idle = yield* Effect.forkChild(drain.idle)
        yield* Effect.yieldNow
        assert.strictEqual(drain.held("submit"), 1)
        assert.isUndefined(idle.pollUnsafe())
        yield* Deferred.succeed(answer, undefined)
        yield* Fiber.join(submit)
        yield* Fiber.join(idle)
        assert.strictEqual(drain.held("submit"), 0)
      })
    )
  )

  it.effect("is hurried separately from its begin", () =>
    withDrain((drain) =>
      Effect.gen(function* () {
        const hurried = yield* Effect.forkChild(drain.hurried)
        yield* drain.begin
        yield* drain.graceUntil(1000)
        yield* Effect.yieldNow
        assert.isUndefined(hurried.pollUnsafe())
        assert.strictEqual(drain.graceEnd(), 1000)
        yield* drain.hurry
        yield* Fiber.join(hurried)
        assert.strictEqual(drain.graceEnd(), -Infinity)
      })
    )
  )
})
