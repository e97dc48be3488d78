import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Exit, Fiber, Scope } from "effect"
import { FairShares } from "../../../src/domain/shares/FairShares.ts"

const make = (bounds: Partial<ConstructorParameters<typeof FairShares>[0]> = {}) =>
  new FairShares({ capacity: 16, aloneMax: 0.75, queueMax: 100, ...bounds })

/** Takes as many slots as it can get. */
const fill = (shares: FairShares, caller: string): number => {
  let count = 0
  while (shares.take(caller)) count += 1
  return count
}

describe("places that are taken without waiting", () => {
  it("leave some for the next caller, however many one caller asks for", () => {
    const shares = make()
    assert.strictEqual(fill(shares, "first"), 12)
    assert.strictEqual(fill(shares, "second"), 3)
    assert.strictEqual(fill(shares, "third"), 1)
    assert.strictEqual(fill(shares, "fourth"), 0)
  })

  it("are returned by name, and a caller without places is forgotten", () => {
    const shares = make()
    fill(shares, "first")
    for (let n = 0; n < 12; n += 1) shares.give("first")
    assert.deepStrictEqual([shares.taken, shares.callers], [0, 0])
    assert.isFalse(make({ capacity: 0 }).take("first"))
    const full = make({ capacity: 0, queueMax: 0 })
    assert.isUndefined(full.wait("first", 1, () => {}))
    assert.strictEqual(full.callers, 0)
  })

  it("are limited per caller, however many are free", () => {
    const shares = make({ capacity: Infinity, aloneMax: 1, perCallerMax: 3 })
    assert.deepStrictEqual([fill(shares, "first"), fill(shares, "second")], [3, 3])
  })

  it("all go to one caller if none are reserved", () => {
    assert.strictEqual(fill(make({ aloneMax: 1 }), "first"), 16)
  })

  it("go to a caller without any, even if they exceed its share", () => {
    const shares = make({ aloneMax: 0.5 })
    assert.isTrue(shares.take("first", 16))
    assert.isFalse(shares.take("first"))
  })

  it("shrink and grow with the capacity", () => {
    const shares = make()
    fill(shares, "first")
    shares.capacity = 8
    assert.isFalse(shares.take("second"))
    shares.capacity = 32
    assert.strictEqual(fill(shares, "second"), 15)
  })

  it("that are added go to waiting callers", () => {
    const shares = make({ capacity: 0 })
    let hasEntered = false
    shares.wait("first", 1, () => {
      hasEntered = true
    })
    shares.capacity = 16
    assert.isTrue(hasEntered)
  })
})

describe("a place that becomes free", () => {
  it("goes to the waiting caller that holds the fewest, in turn among equals", () => {
    const shares = make({ capacity: 4, aloneMax: 1 })
    const order: Array<string> = []
    const wait = (caller: string) => shares.wait(caller, 1, () => order.push(caller))
    for (let n = 0; n < 6; n += 1) wait("greedy")
    for (const caller of ["second", "second", "third"]) wait(caller)
    assert.deepStrictEqual(order, ["greedy", "greedy", "greedy", "greedy"])
    for (let n = 0; n < 4; n += 1) shares.give("greedy")
    assert.deepStrictEqual(order.slice(4), ["second", "third", "greedy", "second"])
    shares.give("third")
    assert.deepStrictEqual(order.slice(8), ["greedy"])
  })

  it("is not given to a caller that asks later without waiting", () => {
    const shares = make({ capacity: 4, aloneMax: 1 })
    assert.isTrue(shares.take("first", 3))
    let hasEntered = false
    shares.wait("large", 4, () => {
      hasEntered = true
    })
    assert.isFalse(shares.take("late"))
    assert.strictEqual(shares.callers, 2)
    shares.give("first", 3)
    assert.isTrue(hasEntered)
  })

  it("goes to the next caller if one stops waiting", () => {
    const shares = make({ capacity: 4, aloneMax: 1 })
    shares.take("first", 3)
    const order: Array<string> = []
    const giveUp = shares.wait("large", 4, () => order.push("large"))
    shares.wait("small", 1, () => order.push("small"))
    giveUp?.()
    giveUp?.()
    assert.deepStrictEqual(order, ["small"])
    assert.strictEqual(shares.callers, 2)
  })

  it("stays with a caller that stops waiting after it got the place", () => {
    const shares = make({ capacity: 1, aloneMax: 1 })
    shares.take("first")
    const giveUp = shares.wait("second", 1, () => {})
    shares.give("first")
    giveUp?.()
    assert.deepStrictEqual([shares.taken, shares.callers], [1, 1])
    shares.give("second")
    assert.deepStrictEqual([shares.taken, shares.callers], [0, 0])
  })
})

describe("an effect within its caller's share", () => {
  it.effect("waits for a place and returns it, however it ends", () =>
    Effect.gen(function* () {
      const shares = make({ capacity: 1 })
      const open = yield* Deferred.make<void>()
      const first = yield* Effect.forkChild(shares.within("first")(Deferred.await(open)))
      const second = yield* Effect.forkChild(
        Effect.exit(shares.within("second")(Effect.fail("broken")))
      )
      yield* Effect.yieldNow
      assert.strictEqual(shares.callers, 2)
      yield* Deferred.succeed(open, undefined)
      yield* Fiber.join(first)
      assert.isTrue(Exit.isFailure(yield* Fiber.join(second)))
      assert.deepStrictEqual([shares.taken, shares.callers], [0, 0])
    })
  )

  it.effect("leaves the queue or returns its place if it is interrupted", () =>
    Effect.gen(function* () {
      const shares = make({ capacity: 1 })
      const runs = yield* Effect.forkChild(shares.within("first")(Effect.never))
      const waits = yield* Effect.forkChild(shares.within("second")(Effect.never))
      yield* Effect.yieldNow
      yield* Fiber.interrupt(waits)
      assert.deepStrictEqual([shares.taken, shares.callers], [1, 1])
      yield* Fiber.interrupt(runs)
      assert.deepStrictEqual([shares.taken, shares.callers], [0, 0])
    })
  )

  it.effect("is refused if its caller's queue is full", () =>
    Effect.gen(function* () {
      const shares = make({ capacity: 1, queueMax: 1 })
      yield* Effect.forkChild(shares.within("first")(Effect.never))
      yield* Effect.yieldNow
      yield* Effect.forkChild(shares.within("second")(Effect.never))
      yield* Effect.yieldNow
      const refused = yield* Effect.flip(shares.within("second")(Effect.void))
      assert.strictEqual(refused._tag, "ShareExhausted")
      const other = yield* Effect.forkChild(shares.within("third")(Effect.void))
      yield* Effect.yieldNow
      assert.isUndefined(other.pollUnsafe())
      assert.strictEqual(shares.callers, 3)
    })
  )

  it.effect("never waits if it holds its place until a scope closes", () =>
    Effect.gen(function* () {
      const shares = make({ capacity: 4, aloneMax: 0.25 })
      const scope = yield* Scope.make()
      yield* Scope.provide(shares.hold("first"), scope)
      const refused = yield* Effect.flip(Scope.provide(shares.hold("first"), scope))
      assert.strictEqual(refused._tag, "ShareExhausted")
      yield* Scope.provide(shares.hold("second"), scope)
      yield* Scope.close(scope, Exit.void)
      assert.deepStrictEqual([shares.taken, shares.callers], [0, 0])
    })
  )
})
