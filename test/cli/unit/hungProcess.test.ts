import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import type { Child } from "../../../src/cli/processes/Children.ts"
import { watch } from "../../../src/cli/processes/Supervisor.ts"

/** docs/reference/processes.md#all-cores-of-a-machine */

/** A watched process whose answers the test decides. */
const watched = Effect.gen(function* () {
  const kills: Array<Child> = []
  const processOf = (pid: number): Child => {
    const child = { pid, state: "listening", process: { kill: () => kills.push(child) } } as never
    return child
  }
  const slot = { child: processOf(1) }
  const it = { isAlive: true, kills, processOf, slot }
  yield* Effect.forkScoped(watch({ isAlive: () => Promise.resolve(it.isAlive) }, slot))
  return it
})

/** Time passes, and answers arrive. */
const pass = (seconds: number) =>
  Effect.forEach(
    Array.from({ length: seconds }),
    () =>
      Effect.andThen(
        TestClock.adjust("1 second"),
        Effect.promise(() => Promise.resolve())
      ),
    { discard: true }
  )

describe("a process of a group", () => {
  it.effect("is killed once after it has hung for a minute", () =>
    Effect.gen(function* () {
      const it = yield* watched
      const { child } = it.slot
      yield* pass(30)
      it.isAlive = false
      yield* pass(55)
      assert.deepStrictEqual(it.kills, [])
      yield* pass(10)
      assert.deepStrictEqual(it.kills, [child])
      yield* pass(120)
      assert.deepStrictEqual(it.kills, [child])
    }).pipe(Effect.scoped)
  )

  it.effect("is not killed if it responds within a minute each time", () =>
    Effect.gen(function* () {
      const it = yield* watched
      for (let round = 0; round < 5; round += 1) {
        it.isAlive = true
        yield* pass(10)
        it.isAlive = false
        yield* pass(50)
      }
      assert.deepStrictEqual(it.kills, [])
    }).pipe(Effect.scoped)
  )

  it.effect("is not killed while it starts as a replacement", () =>
    Effect.gen(function* () {
      const it = yield* watched
      yield* pass(30)
      it.isAlive = false
      yield* pass(30)
      it.slot.child = it.processOf(2)
      yield* pass(300)
      assert.deepStrictEqual(it.kills, [])
      it.isAlive = true
      yield* pass(10)
      it.isAlive = false
      yield* pass(65)
      assert.deepStrictEqual(it.kills, [it.slot.child])
    }).pipe(Effect.scoped)
  )
})
