import { afterEach, assert, beforeEach, describe, it, vi } from "vitest"
import { inHeavyTurn } from "../../../src/domain/shares/Slices.ts"

describe("heavy work", () => {
  let now = 0

  /** Work that other tests of this process left behind would delay the first piece. */
  beforeEach(async () => {
    await new Promise<void>((resolve) => inHeavyTurn(resolve))
    vi.useFakeTimers({ toFake: ["setTimeout", "setImmediate"] })
    vi.spyOn(performance, "now").mockImplementation(() => now)
    piecesOf(1, 10)
    piecesOf(1, 0)
    vi.advanceTimersToNextTimer()
    vi.advanceTimersToNextTimer()
  })

  afterEach(() => {
    vi.useRealTimers()
    vi.restoreAllMocks()
  })

  const piecesOf = (count: number, millis: number) => {
    const done: Array<number> = []
    for (let n = 0; n < count; n += 1) {
      inHeavyTurn(() => {
        now += millis
        done.push(n)
      })
    }
    return done
  }

  it("runs one piece per turn of the event loop, oldest first", () => {
    const done = piecesOf(3, 0)
    assert.deepStrictEqual(done, [])
    for (const expected of [[0], [0, 1], [0, 1, 2]]) {
      vi.advanceTimersToNextTimer()
      assert.deepStrictEqual(done, expected)
    }
  })

  it("leaves the event loop to other work for twice the duration of a piece", () => {
    const done = piecesOf(3, 20)
    vi.advanceTimersByTime(0)
    assert.deepStrictEqual(done, [0])
    vi.advanceTimersByTime(39)
    assert.deepStrictEqual(done, [0])
    vi.advanceTimersByTime(1)
    assert.deepStrictEqual(done, [0, 1])
    vi.advanceTimersByTime(40)
    assert.deepStrictEqual(done, [0, 1, 2])
  })

  it("counts each MiB that a piece moves as 4 milliseconds", () => {
    const done: Array<number> = []
    for (const n of [0, 1]) inHeavyTurn(() => done.push(n), 1024 * 1024)
    vi.advanceTimersByTime(0)
    assert.deepStrictEqual(done, [0])
    vi.advanceTimersByTime(7)
    assert.deepStrictEqual(done, [0])
    vi.advanceTimersByTime(1)
    assert.deepStrictEqual(done, [0, 1])
  })
})
