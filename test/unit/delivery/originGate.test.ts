import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { OriginGate } from "../../../src/delivery/OriginGate.ts"

const url = new URL("https://hooks.example.com/hook")

/** A gate, with attempts that enter and leave by their number. */
const gateOf = (max: number, now?: () => number) => {
  const gate = new OriginGate(max, now)
  const started: Array<number> = []
  const leave: Array<() => void> = []
  const enter = (count: number) => {
    for (let n = 0; n < count; n += 1) {
      const own = leave.length
      leave.push(() => {})
      leave[own] = gate.enter(url, () => started.push(own))
    }
  }
  return { enter, gate, leave, started }
}

const turn = Effect.promise(() => new Promise((resolve) => setImmediate(resolve)))
const until = (isThere: () => boolean) => Effect.repeat(turn, { until: () => isThere() })

describe("attempts at one origin that has no free connection", () => {
  it.effect("begin one connection at a time, save the first two of a URL", () =>
    Effect.gen(function* () {
      const { enter, started } = gateOf(128)
      enter(6)
      // Two are the URL's own, one more may go at once
      assert.deepStrictEqual(started, [0, 1, 2])
      yield* until(() => started.length === 4)
      yield* until(() => started.length === 6)
      assert.deepStrictEqual(started, [0, 1, 2, 3, 4, 5])
    })
  )

  it.effect("take one that has become free, without a wait and without another", () =>
    Effect.gen(function* () {
      const { enter, gate, leave, started } = gateOf(3)
      enter(3)
      const opened = [1, 2, 3].map(() => gate.opened(url.origin))
      enter(2)
      assert.strictEqual(started.length, 3, "the bound holds")
      leave[0]!()
      assert.strictEqual(started.length, 3, "undici has it a turn later")
      yield* turn
      assert.deepStrictEqual(started, [0, 1, 2, 3])
      leave[4]!()
      leave[1]!()
      yield* turn
      assert.strictEqual(started.length, 4, "who has left waits no more")
      for (const close of opened) close()
    })
  )

  it.effect("all go at once when as many connections are open", () =>
    Effect.gen(function* () {
      const { enter, gate, leave, started } = gateOf(128)
      for (let n = 0; n < 8; n += 1) gate.opened(url.origin)
      enter(8)
      assert.strictEqual(started.length, 8)
      for (const one of leave) one()
      yield* turn
      enter(8)
      assert.strictEqual(started.length, 16)
    })
  )
})

describe("calm at a gate", () => {
  it.effect("is at once while nobody has to wait", () =>
    Effect.sync(() => {
      const { enter, gate } = gateOf(128)
      enter(2)
      let calm = false
      gate.onCalm(() => (calm = true))
      assert.isTrue(calm)
    })
  )

  it.effect("comes when those who had to wait have their places", () =>
    Effect.gen(function* () {
      const { enter, gate, started } = gateOf(128)
      enter(8)
      let startedBefore = 0
      gate.onCalm(() => (startedBefore = started.length))
      assert.strictEqual(startedBefore, 0)
      yield* until(() => startedBefore > 0)
      assert.strictEqual(startedBefore, 8)
    })
  )

  it.effect("comes after a second, though others still get places", () =>
    Effect.gen(function* () {
      let now = 0
      const { enter, gate, leave, started } = gateOf(3, () => now)
      /** The oldest that has a place leaves, and one that waits has it. */
      const admit = Effect.suspend(() => {
        enter(1)
        leave[started.length - 3]!()
        return turn
      })
      for (let n = 0; n < 3; n += 1) gate.opened(url.origin)
      enter(3)
      yield* admit
      let calmAt = -1
      gate.onCalm(() => (calmAt = now))
      for (now = 15; now < 1000; now += 195) {
        yield* admit
        // Longer than it takes to look again
        yield* Effect.promise(() => new Promise((resolve) => setTimeout(resolve, 21)))
        assert.strictEqual(calmAt, -1)
      }
      now = 1000
      yield* admit
      yield* until(() => calmAt >= 0)
      assert.strictEqual(calmAt, 1000)
    })
  )
})
