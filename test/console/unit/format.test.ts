import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import {
  isCredits,
  parseCredits,
  shareOfCredits,
  showCredits,
  sumCredits,
  textOfCredits
} from "../../../src/console/format/credits.ts"
import {
  isoOfLocalInput,
  localInputOf,
  monthUpTo,
  showDuration,
  utcOf
} from "../../../src/console/format/time.ts"
import { matchPath } from "../../../src/console/router/match.ts"

describe("amounts of credits", () => {
  it("are exact, whatever their size", () => {
    assert.strictEqual(showCredits("9007199254740993.123456"), "9,007,199,254,740,993.123456")
    assert.strictEqual(showCredits("-1234.5"), "-1,234.50")
    assert.strictEqual(showCredits("0.000100"), "0.0001")
    assert.strictEqual(sumCredits(["0.1", "0.2", "-0.05"]), "0.25")
    assert.throws(() => parseCredits("1e3"), RangeError)
    assert.isTrue(isCredits("-12.50"))
    assert.isFalse(isCredits("12.505"))
    fc.assert(fc.property(fc.bigInt(), (micro) => parseCredits(textOfCredits(micro)) === micro))
  })

  it("give the length of a bar", () => {
    assert.strictEqual(shareOfCredits("2.50", "10.00"), 0.25)
    assert.strictEqual(shareOfCredits("2.50", "0.00"), 0)
  })
})

describe("times", () => {
  it("are read by people and by the API", () => {
    assert.deepStrictEqual([340, 3200, 125_000, 12_000_000].map(showDuration), [
      "340 ms",
      "3.2 s",
      "2 min 5 s",
      "3 h 20 min"
    ])
    assert.strictEqual(utcOf("2030-01-31T12:00:00.123Z"), "2030-01-31 12:00:00.123 UTC")
    assert.strictEqual(
      isoOfLocalInput(localInputOf("2030-01-31T12:00:00.000Z")),
      "2030-01-31T12:00:00.000Z"
    )
    assert.isUndefined(isoOfLocalInput(""))
    assert.deepStrictEqual(monthUpTo(new Date("2030-02-03T23:00:00Z")), [
      "2030-02-01",
      "2030-02-02",
      "2030-02-03"
    ])
  })
})

describe("paths of pages", () => {
  it("have names for their parts", () => {
    assert.deepStrictEqual(matchPath("/tasks/:id", "/tasks/a%20b"), { id: "a b" })
    assert.deepStrictEqual(matchPath("/tasks/:id", "/tasks/%"), { id: "%" })
    assert.isUndefined(matchPath("/tasks/:id", "/tasks"))
    assert.isUndefined(matchPath("/tasks", "/calls"))
  })
})
