import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Latch, Scope } from "effect"
import { makeFiberPlaces } from "../../../src/process/Places.ts"

const until = (isThere: () => boolean) => Effect.repeat(Effect.yieldNow, { until: () => isThere() })

describe("fibers in places", () => {
  it.effect("run at once, and one that dies harms no other", () =>
    Effect.gen(function* () {
      const run = yield* makeFiberPlaces
      const ended: Array<number> = []
      const open = yield* Latch.make()
      for (let n = 0; n < 3; n += 1) {
        run(Effect.andThen(open.await, () => Effect.sync(() => ended.push(n))))
      }
      run(Effect.die("broken"))
      yield* open.open
      yield* until(() => ended.length === 3)
      assert.deepStrictEqual(ended, [0, 1, 2])
    })
  )

  it.effect("are interrupted with their scope, which waits for what they do at their end", () =>
    Effect.gen(function* () {
      const scope = yield* Scope.make()
      const run = yield* Scope.provide(makeFiberPlaces, scope)
      const told: Array<string> = []
      const tell = (word: string) => Effect.sync(() => told.push(word))
      // Places of those that have ended are taken again, and nobody is lost by it
      for (let n = 0; n < 5; n += 1) run(tell("short"))
      yield* until(() => told.length === 5)
      for (const name of ["first", "second", "third"]) {
        const last = Effect.andThen(Effect.yieldNow, tell(`${name} is over`))
        run(Effect.onInterrupt(Effect.never, () => last))
      }
      yield* Effect.yieldNow
      yield* Scope.close(scope, Exit.void)
      assert.deepStrictEqual(told.slice(5).sort(), [
        "first is over",
        "second is over",
        "third is over"
      ])
      run(tell("too late"))
      yield* Effect.yieldNow
      assert.lengthOf(told, 8)
    })
  )
})
