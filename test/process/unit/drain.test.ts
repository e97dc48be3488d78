import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Fiber, Option } from "effect"
import { Drain } from "../../../src/process/Drain.ts"

const withDrain = <A, E>(body: (drain: Drain["Service"]) => Effect.Effect<A, E>) =>
  Effect.flatMap(Drain, body).pipe(Effect.provide(Drain.layer))

describe("a drain", () => {
  it.effect("interrupts what waits when it begins, and starts nothing after that", () =>
    withDrain((drain) =>
      Effect.gen(function* () {
        const ends: Array<string> = []
        const waiting = Effect.never.pipe(
          Effect.onInterrupt(() => Effect.sync(() => ends.push("interrupted")))
        )
        const fiber = yield* Effect.forkChild(drain.untilBegun(waiting))
        yield* Effect.yieldNow
        assert.isFalse(drain.isDraining())
        yield* drain.begin
        yield* drain.begin
        assert.deepStrictEqual(yield* Fiber.join(fiber), Option.none())
        assert.deepStrictEqual(ends, ["interrupted"])
        assert.isTrue(drain.isDraining())
        yield* drain.begun
        const late = drain.untilBegun(Effect.sync(() => ends.push("started")))
        assert.deepStrictEqual(yield* late, Option.none())
        assert.deepStrictEqual(ends, ["interrupted"])
      })
    )
  )

  it.effect("returns what ended before it, and its failure", () =>
    withDrain((drain) =>
      Effect.gen(function* () {
        assert.deepStrictEqual(yield* drain.untilBegun(Effect.succeed(1)), Option.some(1))
        const failed = yield* Effect.flip(drain.untilBegun(Effect.fail("refused")))
        assert.strictEqual(failed, "refused")
      })
    )
  )

  it.effect("waits for an uninterruptible part, and for what is held", () =>
    withDrain((drain) =>
      Effect.gen(function* () {
        const answer = yield* Deferred.make<void>()
        const answers: Array<string> = []
        const submit = Deferred.await(answer).pipe(
          Effect.andThen(Effect.sync(() => answers.push("recorded"))),
          drain.hold("submit"),
          Effect.uninterruptible
        )
        const run = yield* Effect.forkChild(
          drain.untilBegun(
            Effect.andThen(
              submit,
              Effect.sync(() => answers.push("polled"))
            )
          )
        )
        yield* Effect.yieldNow
        yield* drain.begin
        const idle = yield* Effect.forkChild(drain.idle)
        yield* Effect.yieldNow
        assert.strictEqual(drain.held("submit"), 1)
        assert.isUndefined(idle.pollUnsafe())
        yield* Deferred.succeed(answer, undefined)
        yield* Fiber.join(idle)
        assert.deepStrictEqual(yield* Fiber.join(run), Option.none())
        assert.deepStrictEqual(answers, ["recorded"])
        assert.strictEqual(drain.held("submit"), 0)
      })
    )
  )

  it.effect("is hurried apart from its begin", () =>
    withDrain((drain) =>
      Effect.gen(function* () {
        const hurried = yield* Effect.forkChild(drain.hurried)
        yield* drain.begin
        yield* Effect.yieldNow
        assert.isUndefined(hurried.pollUnsafe())
        yield* drain.hurry
        yield* Fiber.join(hurried)
      })
    )
  )
})
