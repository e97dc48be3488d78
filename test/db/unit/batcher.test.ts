import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Fiber, Latch, Scope } from "effect"
import { Batcher } from "../../../src/db/Batcher.ts"

/** Some turns of the event loop, in which all runnable fibers continue. */
const turns = Effect.promise(async () => {
  for (let turn = 0; turn < 50; turn += 1) await new Promise((resolve) => setImmediate(resolve))
})

/** A run that records its items, waits for a gate, and dies on a broken item. */
const gated = (broken?: number) => {
  const batches: Array<ReadonlyArray<number>> = []
  const gate = Latch.makeUnsafe()
  const run = (items: ReadonlyArray<number>) =>
    Effect.gen(function* () {
      batches.push(items)
      yield* gate.await
      if (broken !== undefined && items.includes(broken)) return yield* Effect.die("broken")
      return items
    })
  return { batches, gate, run }
}

const lengths = (batches: ReadonlyArray<ReadonlyArray<unknown>>) =>
  batches.map((batch) => batch.length)

describe("a batcher in a scope", () => {
  it.live("runs a call at once, and calls that arrive meanwhile together", () =>
    Effect.gen(function* () {
      const { batches, gate, run } = gated(7)
      const { call } = yield* Batcher.make({ run, itemsMax: 5, runsMax: 1, splitBatch: true })
      const first = yield* Effect.forkChild(call(100))
      yield* turns
      assert.deepStrictEqual(lengths(batches), [1])
      const rest = yield* Effect.forEach(Array.from({ length: 8 }), (_, n) =>
        Effect.forkChild(Effect.exit(call(n)))
      )
      yield* turns
      // Items not yet started are never run; started ones are awaited
      yield* Fiber.interrupt(rest[1]!)
      const leaving = yield* Effect.forkChild(Fiber.interrupt(first))
      yield* turns
      assert.strictEqual(leaving.pollUnsafe(), undefined)
      gate.openUnsafe()
      yield* Fiber.join(leaving)
      const exits = yield* Effect.forEach(
        rest.filter((_, n) => n !== 1),
        Fiber.join
      )
      assert.deepStrictEqual(
        exits.map((exit) => (exit._tag === "Success" ? exit.value : -1)),
        [0, 2, 3, 4, 5, 6, -1]
      )
      assert.deepStrictEqual(lengths(batches), [1, 5, 2, 1, 1])
    }).pipe(Effect.scoped)
  )

  it.live("interrupts its runs and all waiting calls when the scope ends, and later calls", () =>
    Effect.gen(function* () {
      const { batches, run } = gated()
      const scope = yield* Scope.make()
      const batcher = yield* Scope.provide(Batcher.make({ run, itemsMax: 1, runsMax: 1 }), scope)
      const calls = yield* Effect.forEach([1, 2, 3], (n) =>
        Effect.forkChild(Effect.exit(batcher.call(n)))
      )
      yield* turns
      yield* Scope.close(scope, Exit.void)
      const exits = yield* Effect.forEach(calls, Fiber.join)
      exits.push(yield* Effect.exit(batcher.call(4)))
      assert.deepStrictEqual(exits.map(Exit.hasInterrupts), [true, true, true, true])
      assert.deepStrictEqual(batches[0], [1])
      yield* batcher.settled
    })
  )
})

describe("a detached batcher", () => {
  it.live("runs all its items, even if the caller or a scope has ended meanwhile", () =>
    Effect.gen(function* () {
      const { batches, gate, run } = gated()
      const scope = yield* Scope.make()
      const batcher = yield* Scope.provide(
        Batcher.makeDetached({ run, itemsMax: 2, runsMax: 1 }),
        scope
      )
      const calls = yield* Effect.forEach([1, 2], (n) => Effect.forkChild(batcher.call(n)))
      yield* turns
      yield* Fiber.interruptAll(calls)
      yield* Scope.close(scope, Exit.void)
      batcher.add(3)
      gate.openUnsafe()
      yield* batcher.settled
      assert.deepStrictEqual(batches, [[1, 2], [3]])
    })
  )

  it.effect("runs added items at once, and those of one event-loop turn in one run", () =>
    Effect.gen(function* () {
      const { batches, gate, run } = gated()
      const { add, settled } = yield* Batcher.makeDetached({ run, itemsMax: 200, runsMax: 1 })
      gate.openUnsafe()
      add(1)
      add(2)
      yield* settled
      assert.deepStrictEqual(batches, [[1, 2]])
      add(3)
      yield* settled
      assert.deepStrictEqual(batches, [[1, 2], [3]])
    })
  )

  it.effect("then runs the items added during a run, up to the size of a run", () =>
    Effect.gen(function* () {
      const { batches, gate, run } = gated()
      const { add, settled } = yield* Batcher.makeDetached({ run, itemsMax: 200, runsMax: 1 })
      for (let n = 0; n < 450; n += 1) add(n)
      const waiting = yield* Effect.forkChild(settled)
      for (let turn = 0; turn < 10; turn += 1) yield* Effect.yieldNow
      assert.strictEqual(batches.length, 1)
      yield* gate.open
      yield* Fiber.join(waiting)
      assert.deepStrictEqual(lengths(batches), [200, 200, 50])
      assert.strictEqual(batches.flat().at(-1), 449)
    })
  )

  it.live("is settled when all earlier items have run, even if others were added since", () =>
    Effect.gen(function* () {
      const { batches, gate, run } = gated()
      const { add, settled } = yield* Batcher.makeDetached({
        itemsMax: 1,
        runsMax: 2,
        run: (items: ReadonlyArray<number>) =>
          items.includes(1)
            ? run(items)
            : Effect.sync(() => void batches.push(items)).pipe(Effect.as(items))
      })
      add(1)
      add(2)
      const waiting = yield* Effect.forkChild(settled)
      yield* turns
      add(3)
      yield* turns
      assert.deepStrictEqual(batches, [[1], [2], [3]])
      assert.strictEqual(waiting.pollUnsafe(), undefined)
      gate.openUnsafe()
      yield* Fiber.join(waiting)
    })
  )
})

describe("runs of a batcher that start at an interval", () => {
  it.effect(
    "take together the items that arrive in between, and the first item does not wait",
    () =>
      Effect.gen(function* () {
        const runs: Array<ReadonlyArray<number>> = []
        const times: Array<number> = []
        const { call } = yield* Batcher.makeDetached({
          itemsMax: 100,
          runsMax: 1,
          intervalMillis: 40,
          run: (items: ReadonlyArray<number>) =>
            Effect.sync(() => {
              runs.push(items)
              times.push(performance.now())
              return items
            })
        })
        const asked = performance.now()
        assert.strictEqual(yield* call(1), 1)
        const second = yield* Effect.forkChild(call(2))
        yield* Effect.promise(() => new Promise((resolve) => setImmediate(resolve)))
        const third = yield* Effect.forkChild(call(3))
        assert.deepStrictEqual([yield* Fiber.join(second), yield* Fiber.join(third)], [2, 3])
        assert.deepStrictEqual(runs, [[1], [2, 3]])
        assert.isAtLeast(times[1]! - asked, 40)
      })
  )
})

type Run = (items: ReadonlyArray<string>) => Effect.Effect<ReadonlyArray<string>>

const kinds = {
  "a batch of a detached batcher": (run: Run) =>
    Batcher.makeDetached({ run, itemsMax: 2, runsMax: 1 }),
  "a batch of a batcher of a scope": (run: Run) =>
    Batcher.make({ run, itemsMax: 2, runsMax: 1, splitBatch: true })
}

for (const [name, make] of Object.entries(kinds)) {
  describe(name, () => {
    it.effect("fails its own calls if it cannot be started, and delays no others", () =>
      Effect.scoped(
        Effect.gen(function* () {
          const { add, call, settled } = yield* make((items) => {
            if (items.includes("broken")) throw new Error("cannot be written")
            return Effect.succeed(items.map((item) => `${item} done`))
          })
          assert.isTrue(Exit.hasDies(yield* Effect.exit(call("broken"))))
          assert.strictEqual(yield* call("later"), "later done")
          add("broken")
          yield* settled
          assert.strictEqual(yield* call("still later"), "still later done")
        })
      )
    )
  })
}
