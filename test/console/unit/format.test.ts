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
import { showAxis, topOf } from "../../../src/console/format/scale.ts"
import {
  isoOfLocalInput,
  localInputOf,
  showAgo,
  showDuration,
  showOffset,
  utcOf
} from "../../../src/console/format/time.ts"
import { actionName, isRead } from "../../../src/console/pages/audit/actionName.ts"
import { changeOf, kindOf, rowsOf } from "../../../src/console/pages/wallet/ledger.ts"
import type { Entry } from "../../../src/console/pages/wallet/ledger.ts"
import { matchPath } from "../../../src/console/router/match.ts"

describe("amounts of credits", () => {
  it("are exact at any size", () => {
    assert.strictEqual(showCredits("9007199254740993.123456"), "9,007,199,254,740,993.123456")
    assert.strictEqual(showCredits("-1234.5"), "−1,234.50")
    assert.strictEqual(showCredits("0.000100"), "0.0001")
    assert.strictEqual(sumCredits(["0.1", "0.2", "-0.05"]), "0.25")
    assert.throws(() => parseCredits("1e3"), RangeError)
    assert.isTrue(isCredits("-12.50"))
    assert.isFalse(isCredits("12.505"))
    fc.assert(fc.property(fc.bigInt(), (micro) => parseCredits(textOfCredits(micro)) === micro))
  })

  it("determine the length of a bar", () => {
    assert.strictEqual(shareOfCredits("2.50", "10.00"), 0.25)
    assert.strictEqual(shareOfCredits("2.50", "0.00"), 0)
  })
})

describe("times", () => {
  it("have a form for people and a form for the API", () => {
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
  })

  it("are relative to now in lists, and to the start with hundredths in a timeline", () => {
    const now = new Date("2030-01-31T12:00:00.000Z").getTime()
    const ago = (seconds: number) => showAgo(new Date(now - seconds * 1000).toISOString(), now)
    assert.deepStrictEqual([0, 59, 60, 3599, 7200, 86_400, -120].map(ago), [
      "now",
      "59 s ago",
      "1 min ago",
      "59 min ago",
      "2 h ago",
      "1 d ago",
      "in 2 min"
    ])
    assert.match(ago(20 * 86_400), /^Jan 1\d$/u)
    assert.match(ago(400 * 86_400), /2028$/u)
    assert.deepStrictEqual([0, 8034, 125_000].map(showOffset), ["+0.00 s", "+8.03 s", "+2 min 5 s"])
  })
})

describe("the axis of a chart", () => {
  it("ends at a round value that no bar exceeds", () => {
    assert.deepStrictEqual([0, 0.03, 1, 120, 201, 999].map(topOf), [1, 0.05, 1, 200, 500, 1000])
    fc.assert(
      fc.property(fc.double({ min: 1e-6, max: 1e12, noNaN: true }), (most) => {
        assert.isAtLeast(topOf(most), most)
        assert.isAtMost(topOf(most), most * 10)
      })
    )
    assert.deepStrictEqual([0.05, 200, 12_000].map(showAxis), ["0.05", "200", "12K"])
  })
})

describe("the audit log", () => {
  it("names actions in plain text, and distinguishes reads from changes", () => {
    assert.strictEqual(actionName("createApiKey"), "Create API key")
    assert.strictEqual(actionName("topUp"), "Top up")
    assert.deepStrictEqual(["listApiKeys", "getWallet", "getter", "createUser"].map(isRead), [
      true,
      true,
      false,
      false
    ])
  })
})

describe("the ledger", () => {
  const entry = (seq: number, kind: Entry["kind"], amount: string, task_id: string | null) => ({
    seq,
    kind,
    amount,
    task_id,
    settled_after: "100.00",
    held_after: "0.00",
    note: null,
    trace_id: null,
    created_at: "2030-01-31T12:00:00.000Z"
  })

  it("has a row for each task or call, and a row for each other entry", () => {
    const rows = rowsOf([
      entry(6, "hold", "22.50", "c"),
      entry(5, "release", "2.50", "a"),
      entry(4, "capture", "7.50", "a"),
      entry(3, "release", "3.00", "b"),
      entry(2, "hold", "10.00", "a"),
      entry(1, "top_up", "50.00", null)
    ])
    assert.deepStrictEqual(
      rows.map((row) => [row.id, kindOf(row), changeOf(row), row.entries.length]),
      [
        ["c", "hold", "−22.50", 1],
        ["a", "capture", "−7.50", 3],
        ["b", "release", "", 1],
        ["1", "top_up", "+50.00", 1]
      ]
    )
  })
})

describe("paths of pages", () => {
  it("have named parameters", () => {
    assert.deepStrictEqual(matchPath("/tasks/:id", "/tasks/a%20b"), { id: "a b" })
    assert.deepStrictEqual(matchPath("/tasks/:id", "/tasks/%"), { id: "%" })
    assert.isUndefined(matchPath("/tasks/:id", "/tasks"))
    assert.isUndefined(matchPath("/tasks", "/calls"))
  })
})
