import * as fc from "fast-check"
import { assert, describe, it } from "vitest"
import { AdmissionLimiter } from "../../../src/process/AdmissionLimiter.ts"

/** docs/reference/http.md#overload, ADR 0207 */

const step = fc.oneof(
  fc.record({ kind: fc.constant("requests" as const), count: fc.integer({ min: 1, max: 300 }) }),
  fc.record({ kind: fc.constant("turn" as const), took: fc.integer({ min: 0, max: 500 }) }),
  fc.record({ kind: fc.constant("begin" as const) }),
  fc.record({ kind: fc.constant("end" as const), took: fc.integer({ min: 0, max: 5000 }) })
)

const bounds = fc
  .tuple(fc.integer({ min: 1, max: 64 }), fc.integer({ min: 0, max: 200 }))
  .map(([least, more]) => ({ least, most: least + more }))

describe("AdmissionLimiter", () => {
  it("admits the least always, and the most never exceeds", () => {
    fc.assert(
      fc.property(bounds, fc.array(step, { maxLength: 200 }), ({ least, most }, steps) => {
        const limiter = new AdmissionLimiter({ least, most })
        let [now, operations, admitted, begun] = [0, 0, 0, 0]
        for (const step of steps) {
          if (step.kind === "requests") {
            for (let n = 0; n < step.count; n += 1) {
              const inHand = operations + Math.max(0, admitted - begun)
              const is = limiter.admit()
              if (inHand < least) assert.isTrue(is)
              if (inHand >= most) assert.isFalse(is)
              if (is) admitted += 1
            }
          }
          if (step.kind === "turn") {
            now += step.took
            limiter.turn(now, step.took)
            admitted = 0
            begun = 0
          }
          if (step.kind === "begin") {
            limiter.begin()
            operations += 1
            begun += 1
          }
          if (step.kind === "end" && operations > 0) {
            now += 7
            limiter.end(now, step.took)
            operations -= 1
          }
          assert.isAtLeast(limiter.limit, least)
          assert.isAtMost(limiter.limit, most)
        }
      })
    )
  })
})
