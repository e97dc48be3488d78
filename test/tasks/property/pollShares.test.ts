import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { UserId } from "../../../src/domain/Ids.ts"
import { levelOf, PollShares } from "../../../src/tasks/submission/PollShares.ts"

/** docs/reference/vendors.md#poll-interval, ADR 0195 */

const idOf = (n: number) => UserId.make(`00000000-0000-7000-8000-${String(n).padStart(12, "0")}`)

const sharesOf = (jobs: ReadonlyArray<number>) => {
  const shares = new PollShares()
  shares.replace(jobs.map((count, n) => ({ userId: idOf(n), jobs: count })))
  return shares
}

/** The polls per second of all jobs of a user, if each is polled at its interval. */
const polls = (shares: PollShares, jobs: ReadonlyArray<number>, perSecond: number) =>
  jobs.map((count, n) => {
    const seconds = Math.max(2.5, shares.intervalMillis(idOf(n), perSecond, 0) / 1000)
    return count / seconds
  })

describe("shares of the polls of an account", () => {
  it("use exactly the whole rate, and none is smaller than another with equal demand", () => {
    fc.assert(
      fc.property(
        fc.array(fc.integer({ min: 1, max: 10_000 }), {
          minLength: 1,
          maxLength: 50
        }),
        fc.integer({ min: 1, max: 500 }),
        (jobs, perSecond) => {
          const each = polls(sharesOf(jobs), jobs, perSecond)
          const wanted = jobs.map((count) => count / 2.5)
          const sum = each.reduce((total, it) => total + it, 0)
          const all = wanted.reduce((total, it) => total + it, 0)
          assert.closeTo(sum, Math.min(all, perSecond * 0.95), 1e-6)
          const level = levelOf(jobs, perSecond)
          for (const [n, it] of each.entries()) {
            assert.closeTo(it, Math.min(wanted[n]!, level), 1e-6)
          }
        }
      )
    )
  })

  it("are computed again after 250 ms, after a larger change, and from the jobs of all processes", () => {
    const shares = sharesOf([1000])
    const [busy, small, third] = [idOf(0), idOf(1), idOf(2)]
    const interval = (now: number) => shares.intervalMillis(busy, 40, now)
    assert.closeTo(interval(0), 1_000_000 / 38, 1)
    shares.add(busy, -20)
    shares.add(small, 20)
    assert.closeTo(interval(249), 980_000 / 38, 1)
    assert.closeTo(interval(250), 980_000 / 30, 1)
    shares.add(third, 1000)
    assert.closeTo(interval(251), 980_000 / 15, 1)
    shares.replace([busy, third].map((userId) => ({ userId, jobs: 1000 })))
    assert.closeTo(interval(252), 1_000_000 / 19, 1)
  })

  it("follow the jobs that begin and end", () => {
    const shares = sharesOf([])
    const [busy, other] = [idOf(1), idOf(2)]
    for (let n = 0; n < 1000; n += 1) shares.add(busy, 1)
    shares.add(other, 1)
    assert.closeTo(shares.intervalMillis(busy, 40, 0), 1_000_000 / (38 - 0.4), 30)
    assert.isAtMost(shares.intervalMillis(other, 40, 0), 2500)
    for (let n = 0; n < 1100; n += 1) shares.add(busy, -1)
    assert.strictEqual(shares.intervalMillis(busy, 40, 0), 0)
    assert.strictEqual(shares.intervalMillis(other, 40, 0), 0)
  })
})
