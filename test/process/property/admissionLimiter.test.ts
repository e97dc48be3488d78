import * as fc from "fast-check"
import { assert, describe, it } from "vitest"
import { limiterOf } from "../../support/admission.ts"

/** docs/reference/http.md#overload, ADR 0207 */

const step = fc.oneof(
  fc.record({ kind: fc.constant("requests" as const), count: fc.integer({ min: 1, max: 300 }) }),
  fc.record({ kind: fc.constant("turn" as const), took: fc.integer({ min: 0, max: 500 }) }),
  fc.record({ kind: fc.constant("begin" as const) }),
  fc.record({ kind: fc.constant("end" as const), took: fc.integer({ min: 0, max: 5000 }) })
)

const bounds = fc
  .tuple(
    fc.integer({ min: 1, max: 64 }),
    fc.integer({ min: 0, max: 100 }),
    fc.integer({ min: 0, max: 100 })
  )
  .map(([least, more, most]) => ({ least, usual: least + more, most: least + more + most }))

describe("AdmissionLimiter", () => {
  it("always admits the minimum, admits the usual until a refusal, and never exceeds the maximum", () => {
    fc.assert(
      fc.property(bounds, fc.array(step, { maxLength: 200 }), ({ least, most, usual }, steps) => {
        const limiter = limiterOf({ least, most, usual })
        let hasRefused = false
        let [now, operations, admitted, begun] = [0, 0, 0, 0]
        for (const step of steps) {
          if (step.kind === "requests") {
            for (let n = 0; n < step.count; n += 1) {
              const inHand = operations + Math.max(0, admitted - begun)
              const is = limiter.admit("user")
              const atOnce = Math.max(inHand, admitted)
              if (atOnce < least) assert.isTrue(is)
              if (atOnce >= most) assert.isFalse(is)
              if (atOnce < usual && !hasRefused) assert.isTrue(is)
              if (is) admitted += 1
              else hasRefused = true
            }
          }
          if (step.kind === "turn") {
            now += step.took
            limiter.turn(now, step.took)
            admitted = 0
            begun = 0
          }
          if (step.kind === "begin") {
            limiter.begin("user")
            operations += 1
            begun += 1
          }
          if (step.kind === "end" && operations > 0) {
            now += 7
            limiter.end("user", now, step.took)
            operations -= 1
          }
          assert.isAtLeast(limiter.limit, least)
          assert.isAtMost(limiter.limit, most)
        }
      })
    )
  })
})
