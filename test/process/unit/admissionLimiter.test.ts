import { assert, describe, it } from "vitest"
import { AdmissionLimiter } from "../../../src/process/admission/AdmissionLimiter.ts"
import { delayMillisMax, limiterOf } from "../../support/admission.ts"

/** docs/reference/http.md#overload, ADR 0207 */

const bounds = { least: 16, usual: 64, most: 256 }

/**
 * A store that completes this many operations per second, one after the other, behind an event loop that turns every 5
 * ms.
 */
const processOf = (perSecond: number) => {
  const limiter = limiterOf(bounds)
  const waiting: Array<number> = []
  let now = 0
  let [due, owed] = [0, 0]
  const run = (millis: number, arrivals: number) => {
    const waits: Array<number> = []
    let refused = 0
    for (const until = now + millis; now < until; now += 5) {
      for (due += (arrivals * 5) / 1000; due >= 1; due -= 1) {
        if (!limiter.admit("user")) refused += 1
        else {
          limiter.begin("user")
          waiting.push(now)
        }
      }
      limiter.turn(now, 1)
      for (owed += (perSecond * 5) / 1000; owed >= 1 && waiting.length > 0; owed -= 1) {
        const wait = now + 5 - (waiting.shift() ?? now)
        waits.push(wait)
        limiter.end("user", now + 5, wait)
      }
      if (waiting.length === 0) owed = 0
    }
    return { refused, served: waits.length, longest: Math.max(0, ...waits) }
  }
  return { limiter, run }
}

describe("AdmissionLimiter", () => {
  for (const times of [2, 10]) {
    it(`serves at full capacity, and each request within a short time, at ${times} times its capacity`, () => {
      const { run } = processOf(1000)
      const first = run(1000, times * 1000)
      // The burst before delays are known
      assert.isAtMost(first.longest, bounds.most + 10)
      const later = run(5000, times * 1000)
      assert.closeTo(later.served, 5000, 100)
      assert.isAtMost(later.longest, bounds.usual + 50)
      assert.closeTo(later.refused, (times - 1) * 5000, 100)
    })
  }

  it("admits less in a lasting overload than in a burst, so that admitted requests wait less", () => {
    const { run } = processOf(1000)
    run(2000, 10_000)
    const later = run(5000, 10_000)
    assert.isAtMost(later.longest, bounds.least + 20)
    assert.closeTo(later.served, 5000, 100)
  })

  it("never refuses the usual number of clients if each waits for its response", () => {
    const limiter = limiterOf(bounds)
    let now = 0
    for (let round = 0; round < 200; round += 1) {
      for (let n = 0; n < bounds.usual; n += 1) {
        assert.isTrue(limiter.admit("user"))
        limiter.begin("user")
      }
      limiter.turn(now, 1)
      now += 200
      for (let n = 0; n < bounds.usual; n += 1) limiter.end("user", now, 200)
    }
    assert.strictEqual(limiter.limit, bounds.usual)
  })

  it("does not treat refusals that are seconds apart as a lasting overload", () => {
    const limiter = limiterOf(bounds)
    for (let now = 0; now < 60_000; now += 2000) {
      for (let at = now; at < now + 300; at += 150) {
        while (limiter.admit("user")) limiter.begin("user")
        for (let n = 0; n < bounds.usual; n += 1) limiter.end("user", at + 149, 100)
        limiter.turn(at + 150, 100)
      }
      assert.isAtLeast(limiter.limit, bounds.usual)
    }
  })

  it("stops refusing once the load falls and admitted requests have ended, at any moment of a window", () => {
    for (let moment = 0; moment < 200; moment += 5) {
      const { limiter, run } = processOf(1000)
      run(5000 + moment, 10_000)
      // No more than the minimum is in hand now
      run(bounds.least, 300)
      assert.strictEqual(run(5000, 300).refused, 0)
      assert.strictEqual(limiter.limit, bounds.most)
    }
  })

  it("refuses nothing at nine tenths of its capacity", () => {
    assert.strictEqual(processOf(1000).run(30_000, 900).refused, 0)
  })

  it("admits a burst, and refuses what exceeds it within one turn", () => {
    const limiter = limiterOf(bounds)
    const admitted = Array.from({ length: 1000 }, () => limiter.admit("user")).filter((is) => is)
    assert.strictEqual(admitted.length, bounds.most)
    limiter.turn(0, 10)
    assert.isTrue(limiter.admit("user"))
    assert.strictEqual(limiter.takeRefused(), 1000 - bounds.most)
    assert.strictEqual(limiter.takeRefused(), 0)
  })

  it("counts a request once if its operation begins in the turn that admitted it", () => {
    const limiter = limiterOf(bounds)
    for (let n = 0; n < bounds.most; n += 1) {
      assert.isTrue(limiter.admit("user"))
      limiter.begin("user")
    }
    assert.isFalse(limiter.admit("user"))
    limiter.turn(0, 1)
    assert.isFalse(limiter.admit("user"))
  })

  it("admits any number of requests that wait for a vendor", () => {
    const limiter = limiterOf(bounds)
    for (let n = 0; n < 2000; n += 1) {
      assert.isTrue(limiter.admit("user"))
      // Its hold is written; from then on only the vendor delays it
      limiter.begin("user")
      limiter.turn(n, 1)
      limiter.end("user", n, 2)
    }
    assert.strictEqual(limiter.takeRefused(), 0)
  })

  it("admits few requests if turns of the loop are long, but never fewer than the minimum", () => {
    const limiter = limiterOf(bounds)
    let admitted = 0
    for (let n = 1; n <= 20; n += 1) {
      admitted = 0
      while (limiter.admit("user")) admitted += 1
      limiter.turn(n * 150, 150)
    }
    assert.strictEqual(admitted, bounds.least)
    assert.isAbove(limiter.delay, delayMillisMax)
  })

  it("is limited by a slow store or by long turns, each independently of the other", () => {
    const turn = { least: 2, usual: 4, most: 64, delayMillisMax: 3 }
    const store = { least: 16, usual: 32, most: 64, delayMillisMax: 10 }
    const lasting = (turnMillis: number, storeMillis: number) => {
      const limiter = new AdmissionLimiter({ turn, store })
      let inTurn = 0
      for (let now = 0; now < 5000; now += 50) {
        for (inTurn = 0; limiter.admit("user"); inTurn += 1) limiter.begin("user")
        limiter.turn(now, turnMillis)
        for (let n = 0; n < inTurn; n += 1) limiter.end("user", now + 1, storeMillis)
      }
      return inTurn
    }
    assert.strictEqual(lasting(1, 100), store.least)
    assert.strictEqual(lasting(100, 1), turn.least)
    assert.strictEqual(lasting(1, 1), turn.most)
  })

  it("forgets a slow store after a second without operations, even if requests continue", () => {
    const limiter = limiterOf(bounds)
    for (let n = 1; n <= 20; n += 1) {
      while (limiter.admit("user")) limiter.begin("user")
      for (let k = limiter.limit; k > 0; k -= 1) limiter.end("user", n * 150, 1000)
      limiter.turn(n * 150, 1)
    }
    const slow = limiter.limit
    for (let now = 3000; now < 6000; now += 50) {
      limiter.admit("user")
      limiter.turn(now, 1)
    }
    assert.isAtMost(slow, bounds.usual)
    assert.strictEqual(limiter.limit, bounds.most)
  })

  it("forgets a slow store after a second without work", () => {
    const limiter = limiterOf(bounds)
    for (let n = 1; n <= 20; n += 1) {
      limiter.begin("user")
      limiter.end("user", n * 150, 1000)
    }
    assert.strictEqual(limiter.limit, bounds.usual)
    limiter.begin("user")
    limiter.end("user", 20 * 150 + 1001, 5)
    assert.strictEqual(limiter.limit, bounds.most)
  })

  it("refuses a caller that has its share in this turn, and admits others meanwhile", () => {
    const limiter = limiterOf({ least: 8, usual: 8, most: 8 })
    const admitted = (caller: string) => {
      let count = 0
      while (limiter.admit(caller)) count += 1
      return count
    }
    assert.deepStrictEqual(["greedy", "second", "third"].map(admitted), [8, 2, 1])
    limiter.turn(0, 1)
    assert.strictEqual(admitted("second"), 8)
  })

  it("counts running operations in their caller's share in later turns", () => {
    const limiter = limiterOf({ least: 8, usual: 8, most: 8 })
    for (let n = 0; n < 8; n += 1) limiter.begin("greedy")
    limiter.turn(0, 1)
    assert.isFalse(limiter.admit("greedy"))
    assert.isTrue(limiter.admit("other"))
    for (let n = 0; n < 8; n += 1) limiter.end("greedy", 1, 1)
    assert.isTrue(limiter.admit("greedy"))
  })

  it("soon forgets a caller that has nothing in hand", () => {
    const limiter = limiterOf(bounds)
    limiter.begin("busy")
    for (let n = 0; n < 1000; n += 1) {
      limiter.admit(`caller ${n}`)
      limiter.turn(n * 10, 1)
    }
    assert.isAtMost(limiter.callers, 120)
    limiter.turn(12_000, 1)
    assert.strictEqual(limiter.callers, 1)
  })
})
