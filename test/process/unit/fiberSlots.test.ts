import { assert, describe, it } from "@effect/vitest"
import { Clock, Context, Effect, Exit, Latch, Scope } from "effect"
import { makeFiberSlots } from "../../../src/process/SlotArray.ts"

const until = (isThere: () => boolean) => Effect.repeat(Effect.yieldNow, { until: () => isThere() })

class Ledger extends Context.Service<Ledger, { readonly balance: number }>()(
  "gateway/test/Ledger"
) {}

describe("fibers in slots", () => {
  it.effect("use the clock of the fiber that created them, and do not copy its services", () =>
    Effect.gen(function* () {
      const run = yield* Effect.provideService(makeFiberSlots(), Ledger, { balance: 1 })
      const seen: Array<readonly [Clock.Clock, boolean]> = []
      run(
        Effect.withFiber(({ context }) =>
          Effect.sync(() =>
            seen.push([Context.get(context, Clock.Clock), context.mapUnsafe.has(Ledger.key)])
          )
        )
      )
      yield* until(() => seen.length === 1)
      assert.deepStrictEqual(seen, [[yield* Clock.Clock, false]])
    })
  )

  it.effect("run at once, and one that dies affects no other", () =>
    Effect.gen(function* () {
      const run = yield* makeFiberSlots()
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
      const run = yield* Scope.provide(makeFiberSlots(), scope)
      const words: Array<string> = []
      const record = (word: string) => Effect.sync(() => words.push(word))
      // Slots of ended fibers are reused without losing a fiber
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
