import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { SlidingWindow } from "../../../src/webhooks/SlidingWindow.ts"

const limit = 5
const windowMillis = 60
const minuteMillis = 60_000

/** Sends as soon as it is allowed. Each attempt takes this long, and arrives at some time within it. */
const simulate = (attempts: ReadonlyArray<{ took: number; arrives: number }>) => {
  const window = new SlidingWindow(limit, windowMillis, [])
  const arrivals: Array<number> = []
  const starts: Array<number> = []
  let underWay: Array<number> = []
  let now = 0
  const settle = () => {
    for (const end of underWay.filter((end) => end <= now)) window.end(end)
    underWay = underWay.filter((end) => end > now)
  }
  for (const { arrives, took } of attempts) {
    settle()
    while (window.capacity(now) === 0) {
      const wait = window.waitMillis(now)
      now = Math.min(...underWay, wait > 0 ? now + wait : Infinity)
      settle()
    }
    window.begin(1)
    starts.push(now)
    arrivals.push(now + Math.floor(took * arrives))
    underWay.push(now + took)
    underWay.sort((a, b) => a - b)
  }
  return { arrivals: arrivals.sort((a, b) => a - b), starts }
}

describe("the sliding limit of 600 a minute", () => {
  it("is never exceeded at the receiver in any window, whatever the network does", () => {
    const attempt = fc.record({
      took: fc.integer({ min: 0, max: 40 }),
      arrives: fc.double({ min: 0, max: 1, noNaN: true })
    })
    fc.assert(
      fc.property(fc.array(attempt, { minLength: 1, maxLength: 60 }), (attempts) => {
        const { arrivals } = simulate(attempts)
        arrivals.forEach((last, index) => {
          const first = arrivals[index - limit]
          if (first !== undefined) assert.isAtLeast(last - first, windowMillis)
        })
      })
    )
  })

  it("delays nothing longer than necessary: instant attempts are sent in bursts of the limit", () => {
    const { starts } = simulate(Array.from({ length: 12 }, () => ({ took: 0, arrives: 0 })))
    assert.deepStrictEqual(starts, [0, 0, 0, 0, 0, 60, 60, 60, 60, 60, 120, 120])
  })

  it("delays nothing by more than a window after the clock is set back, and shortens no window", () => {
    const hour = 3_600_000
    const window = new SlidingWindow(limit, minuteMillis, [])
    window.begin(limit)
    for (let n = 0; n < limit; n += 1) window.end(2 * hour)
    const set = hour
    assert.strictEqual(window.capacity(set), 0)
    assert.strictEqual(window.waitMillis(set), minuteMillis)
    assert.strictEqual(window.capacity(set + minuteMillis - 1), 0)
    assert.strictEqual(window.capacity(set + minuteMillis), limit)
  })

  it("delays nothing by more than a window if attempts end before and after the clock is set back", () => {
    const hour = 3_600_000
    const window = new SlidingWindow(limit, minuteMillis, [])
    window.begin(2)
    window.end(2 * hour)
    window.end(hour)
    assert.strictEqual(window.capacity(hour), limit - 2)
    assert.strictEqual(window.capacity(hour + minuteMillis), limit)
  })

  it("is not shortened by small differences between readings of the clock", () => {
    const window = new SlidingWindow(limit, minuteMillis, [])
    window.begin(1)
    window.end(1000)
    assert.strictEqual(window.capacity(500), limit - 1)
    assert.strictEqual(window.capacity(minuteMillis + 999), limit - 1)
    assert.strictEqual(window.capacity(minuteMillis + 1000), limit)
  })

  it("counts no attempt that was not sent", () => {
    const window = new SlidingWindow(limit, windowMillis, [])
    window.begin(limit)
    assert.strictEqual(window.capacity(0), 0)
    window.cancel()
    assert.strictEqual(window.capacity(0), 1)
  })

  it("counts attempts from before a restart", () => {
    const window = new SlidingWindow(limit, windowMillis, [1, 2, 3, 4, 5, 6])
    assert.strictEqual(window.capacity(10), 0)
    assert.strictEqual(window.waitMillis(10), 2 + windowMillis - 10)
    assert.strictEqual(window.capacity(62), 1)
  })
})
