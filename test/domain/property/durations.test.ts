import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { DurationCounts, millisAt, percentile, placeOf } from "../../../src/domain/Durations.ts"

/** docs/reference/usage.md#durations */

const millis = fc.integer({ min: 1, max: 2 ** 31 - 1 })

/** The counts in the Postgres array. */
const countsOf = (durations: ReadonlyArray<number>): ReadonlyArray<number> => {
  const counts = new DurationCounts()
  for (const duration of durations) counts.add(duration)
  return (counts.text() ?? "").slice(1, -1).split(",").map(Number)
}

describe("the classes of durations", () => {
  it("have a middle within a sixteenth of every duration in the class", () => {
    fc.assert(
      fc.property(millis, (duration) => {
        assert.isAtMost(Math.abs(millisAt(placeOf(duration)) - duration), duration / 16)
      })
    )
  })

  it("are ordered: a longer duration is in the same or a later class", () => {
    fc.assert(
      fc.property(millis, millis, (one, other) => {
        assert.strictEqual(
          Math.sign(placeOf(one) - placeOf(other)) * Math.sign(one - other) >= 0,
          true
        )
      })
    )
    assert.deepStrictEqual([0, 1, 2, 3, 8].map(placeOf), [0, 0, 8, 12, 24])
    assert.strictEqual(placeOf(2 ** 40), placeOf(2 ** 31 - 1))
  })

  it("give percentiles within a sixteenth of the exact ones", () => {
    fc.assert(
      fc.property(
        fc.array(millis, { minLength: 1, maxLength: 200 }),
        fc.constantFrom(0.01, 0.5, 0.95, 1),
        (durations, share) => {
          const sorted = [...durations].sort((one, other) => one - other)
          const exact = sorted[Math.ceil(sorted.length * share) - 1] ?? 0
          const found = percentile(countsOf(durations), share) ?? 0
          assert.isAtMost(Math.abs(found - exact), exact / 16)
        }
      )
    )
  })

  it("give no percentile without durations", () => {
    assert.isNull(percentile([], 0.5))
    assert.isNull(new DurationCounts().text())
  })
})
