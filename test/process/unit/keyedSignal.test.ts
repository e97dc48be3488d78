import { assert, describe, it } from "@effect/vitest"
import { Clock, Duration, Effect, Exit, Fiber, Scope } from "effect"
import { TestClock } from "effect/testing"
import { KeyedSignal } from "../../../src/process/signals/KeyedSignal.ts"

const waited = Effect.fnUntraced(function* (wait: Effect.Effect<void>) {
  const waiting = yield* Effect.forkChild(Effect.andThen(wait, Clock.currentTimeMillis))
  yield* TestClock.adjust("1 minute")
  return yield* Fiber.join(waiting)
})

const second = Duration.seconds(1)

describe("a signal of a key", () => {
  it.effect("ends a wait at once, even if it came before the wait, and counts once", () =>
    Effect.gen(function* () {
      const signals = new KeyedSignal<string>()
      const [one, other, another] = [
        yield* signals.subscribe("a"),
        yield* signals.subscribe("a"),
        yield* signals.subscribe("b")
      ]
      signals.notifyUnsafe("a")
      signals.notifyUnsafe("a")
      signals.notifyUnsafe("nobody's")
      assert.strictEqual(yield* waited(one.wait(second)), 0)
      assert.strictEqual(yield* waited(one.wait(second)), 61_000)
      const waiting = yield* Effect.forkChild(other.wait(second))
      yield* Effect.yieldNow
      signals.notifyUnsafe("a")
      yield* Fiber.join(waiting)
      assert.strictEqual(yield* waited(another.wait(second)), 121_000)
    }).pipe(Effect.scoped)
  )

  it.effect("is no longer received when the scope of its subscription has closed", () =>
    Effect.gen(function* () {
      const signals = new KeyedSignal<string>()
      const scope = yield* Scope.make()
      yield* Scope.provide(signals.subscribe("a"), scope)
      yield* Effect.scoped(signals.subscribe("a"))
      assert.strictEqual(signals.size, 1)
      yield* Scope.close(scope, Exit.void)
      assert.strictEqual(signals.size, 0)
    })
  )
})
