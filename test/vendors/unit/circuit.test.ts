import { assert, describe, it } from "@effect/vitest"
import { Circuit } from "../../../src/vendors/accounts/Circuit.ts"

const circuit = () => new Circuit({ failures: 5, openMillis: 10_000 })
const digest = (of: string) => () => of

/** ADR 0132 */
describe("the circuit of a model", () => {
  it("opens after five different requests failed within a minute without a success", () => {
    const it = circuit()
    for (const request of ["a", "b", "c", "d"]) it.fail("user", request, 0)
    assert.isFalse(it.isOpenFor("user", 0))
    it.fail("user", "e", 59_999)
    assert.isTrue(it.isOpenFor("user", 60_000))
    assert.strictEqual(it.remaining(60_000), 9_999)
    assert.strictEqual(it.state(60_000), "Open")
  })

  it("counts a repeated request once", () => {
    const it = circuit()
    for (let time = 0; time < 100; time += 1) it.fail("user", "a", time)
    assert.strictEqual(it.state(100), "Closed")
  })

  it("is not kept open, and no failure is kept, by a repeated request", () => {
    const it = circuit()
    for (const request of ["a", "b", "c", "d"]) it.fail("user", request, 0)
    it.fail("user", "a", 59_000)
    it.fail("user", "e", 60_000)
    assert.strictEqual(it.state(60_000), "Closed", "four are older than a minute")
    for (const request of ["f", "g", "h", "i"]) it.fail("user", request, 60_000)
    it.fail("user", "f", 69_000)
    assert.strictEqual(it.remaining(69_000), 1000)
  })

  it("forgets each failure after a minute, and all after a success", () => {
    const it = circuit()
    assert.isTrue(it.isAtRest)
    for (const request of ["a", "b", "c", "d"]) it.fail("user", request, 0)
    it.fail("user", "e", 60_000)
    assert.strictEqual(it.state(60_000), "Closed")
    assert.isFalse(it.isAtRest, "a success has something to clear")
    for (const request of ["f", "g", "h"]) it.fail("user", request, 60_000)
    it.succeed()
    it.fail("user", "i", 60_000)
    assert.strictEqual(it.state(60_000), "Closed")
  })

  it("tries again after the clock was set back, without waiting for the old time", () => {
    const hour = 3_600_000
    const it = circuit()
    for (const request of ["a", "b", "c", "d", "e"]) it.fail("user", request, hour)
    assert.isTrue(it.isOpenFor("user", hour))
    assert.isFalse(it.isOpenFor("user", 0))
    assert.deepStrictEqual([it.remaining(0), it.state(0)], [0, "HalfOpen"])
    assert.isTrue(it.admits("user", digest("a"), 0))
    for (const request of ["f", "g", "h", "i", "j"]) it.fail("user", request, 0)
    assert.isFalse(it.admits("user", digest("k"), 9_999))
  })

  it("is open for the one user whose requests failed, and for all if a second user's failed", () => {
    const it = circuit()
    for (const request of ["a", "b", "c", "d", "e"]) it.fail("user", request, 0)
    assert.isTrue(it.isOpenFor("user", 1))
    assert.isFalse(it.isOpenFor("another", 1))
    assert.isTrue(it.isOpenFor(null, 1), "the service itself spares the account too")
    assert.isTrue(it.admits("another", digest("x"), 1))
    it.fail("another", "x", 2)
    assert.isTrue(it.isOpenFor("third", 3))
  })

  it("is open for all if no request was the cause", () => {
    const it = circuit()
    for (const attempt of ["1", "2", "3", "4", "5"]) it.fail(null, attempt, 0)
    assert.isTrue(it.isOpenFor("user", 1))
  })

  it("admits one new request at a time when its time is over", () => {
    const it = circuit()
    for (const request of ["a", "b", "c", "d", "e"]) it.fail("user", request, 0)
    assert.strictEqual(it.state(10_000), "HalfOpen")
    assert.isFalse(it.admits("user", digest("a"), 10_000))
    assert.isTrue(it.admits("user", digest("f"), 10_000))
    assert.isFalse(it.admits("user", digest("g"), 10_001))
    it.fail("user", "f", 11_000)
    assert.isTrue(it.isOpenFor("user", 20_999))
    assert.isTrue(it.admits("user", digest("h"), 21_000))
    it.succeed()
    assert.strictEqual(it.state(21_000), "Closed")
    assert.isTrue(it.admits("user", digest("a"), 21_000))
  })

  it("closes by itself if nothing has failed for a minute", () => {
    const it = circuit()
    for (const request of ["a", "b", "c", "d", "e"]) it.fail("user", request, 0)
    assert.isTrue(it.admits("user", digest("a"), 60_000))
    assert.strictEqual(it.state(60_000), "Closed")
  })

  it("keeps only a few failures, but always those of another user", () => {
    const it = circuit()
    for (let i = 0; i < 1000; i += 1) it.fail("user", `${i}`, 0)
    it.fail("another", "x", 0)
    assert.isTrue(it.isOpenFor("third", 1))
    assert.isTrue(it.admits("user", digest("0"), 10_000), "it was forgotten")
  })
})
