import { assert, describe, it } from "@effect/vitest"
import { Overload } from "../../../src/http/server/Overload.ts"

/** docs/reference/http.md#overload, ADR 0196 */

/**
 * A process that finishes so many requests a second, one after the other, and reads all that have come before
 * it takes its next sample: as the event loop does.
 */
const processOf = (perSecond: number) => {
  const overload = new Overload()
  let waiting = 0
  let lateMillis = 0
  return {
    overload,
    get waiting() {
      return waiting
    },
    /** How long a request that is admitted now waits. */
    get waitMillis() {
      return (waiting / perSecond) * 1000
    },
    /** Seconds with so many requests a second; returns how many were refused, and the longest wait. */
    run: (seconds: number, arriving: number) => {
      let [came, refused, longest] = [0, 0, 0]
      for (let at = 0; at < seconds * 1000;) {
        const elapsedMillis = 100 + lateMillis
        at += elapsedMillis
        const arrivals = Math.round((arriving * elapsedMillis) / 1000)
        came += arrivals
        for (let n = 0; n < arrivals; n += 1) {
          if (overload.admit()) waiting += 1
          else refused += 1
        }
        longest = Math.max(longest, (waiting / perSecond) * 1000)
        waiting = Math.max(0, waiting - Math.round((perSecond * elapsedMillis) / 1000))
        // What has been read is worked off in turns of the loop
        lateMillis = Math.min(1000, (waiting / perSecond) * 1000)
        overload.sample({ elapsedMillis, lateMillis, waiting: () => waiting })
      }
      return { came, refused, longest }
    }
  }
}

describe("a process that does not keep up with its requests", () => {
  for (const times of [2, 10]) {
    it(`${times} times what it can do: it refuses the rest, and what it admits waits shortly`, () => {
      const it = processOf(1000)
      const first = it.run(5, times * 1000)
      assert.isAbove(first.refused, 0)
      assert.isAtMost(first.longest, 4000)
      const later = it.run(20, times * 1000)
      assert.closeTo(later.refused / later.came, 1 - 1 / times, 0.15)
      assert.isAtMost(later.longest, 400)
    })
  }

  it("admits all again within five seconds, when fewer come", () => {
    const it = processOf(1000)
    it.run(20, 10_000)
    it.run(5, 300)
    assert.deepStrictEqual(it.run(10, 300).refused, 0)
    assert.strictEqual(it.waiting, 0)
  })

  it("refuses nothing at half of what it can do, nor in a burst that it works off", () => {
    const it = processOf(1000)
    assert.strictEqual(it.run(30, 500).refused, 0)
    assert.strictEqual(it.run(0.1, 8000).refused, 0)
    assert.strictEqual(it.run(10, 500).refused, 0)
  })

  it("refuses nothing when something else keeps the processor, and few requests come", () => {
    const overload = new Overload()
    for (let n = 0; n < 100; n += 1) {
      for (let came = 0; came < 20; came += 1) assert.isTrue(overload.admit())
      overload.sample({ elapsedMillis: 500, lateMillis: 400, waiting: () => 0 })
    }
    assert.strictEqual(overload.refused, 0)
  })

  it("refuses what comes while the loop is stuck in reading requests", () => {
    const overload = new Overload()
    const admitted = Array.from({ length: 5000 }, () => overload.admit()).filter((is) => is)
    assert.strictEqual(admitted.length, 2000)
  })
})
