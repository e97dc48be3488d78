import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Latch, Scope } from "effect"
import { makeFiberPlaces } from "../../../src/process/Places.ts"

const until = (isThere: () => boolean) => Effect.repeat(Effect.yieldNow, { until: () => isThere() })

describe("fibers in places", () => {
  it.effect("run at once, and one that dies affects no other", () =>
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

  it.effect("are interrupted with their scope, which waits for their finalizers", () =>
    Effect.gen(function* () {
      const scope = yield* Scope.make()
      const run = yield* Scope.provide(makeFiberPlaces, scope)
      const words: Array<string> = []
      const record = (word: string) => Effect.sync(() => words.push(word))
      // Places of ended fibers are reused, and no fiber is lost by it
      for (let n = 0; n < 5; n += 1) run(record("short"))
      yield* until(() => words.length === 5)
      for (const name of ["first", "second", "third"]) {
        const last = Effect.andThen(Effect.yieldNow, record(`${name} is over`))
        run(Effect.onInterrupt(Effect.never, () => last))
      }
      yield* Effect.yieldNow
      yield* Scope.close(scope, Exit.void)
      assert.deepStrictEqual(words.slice(5).sort(), [
        "first is over",
        "second is over",
        "third is over"
      ])
      run(record("too late"))
      yield* Effect.yieldNow
      assert.lengthOf(words, 8)
    })
  )
})
