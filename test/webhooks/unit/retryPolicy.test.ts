import { assert, describe, it } from "@effect/vitest"
import { Option } from "effect"
import { attemptsMax, nextAttemptAt, retryDelaysMillis } from "../../../src/webhooks/RetryPolicy.ts"
import { referenceTable } from "../../support/webhookDocs.ts"

/** docs/reference/webhooks.md#retries */
describe("retries", () => {
  it("give a delivery six attempts", () => {
    assert.strictEqual(attemptsMax, 6)
    assert.strictEqual(referenceTable("Retries").length, 6)
  })

  it.each([
    [1, 15],
    [2, 60],
    [3, 300],
    [4, 1800],
    [5, 3600]
  ])("after attempt %i are due %i seconds after its end", (attempt, seconds) => {
    const endedAt = 1_767_225_600_123
    assert.deepStrictEqual(nextAttemptAt(attempt, endedAt), Option.some(endedAt + seconds * 1000))
  })

  it("end after the sixth attempt", () => {
    assert.deepStrictEqual(nextAttemptAt(6, 0), Option.none())
    assert.deepStrictEqual(nextAttemptAt(7, 0), Option.none())
    assert.deepStrictEqual(nextAttemptAt(0, 0), Option.none())
  })

  it("have the delays of the documentation's table", () => {
    const units: Record<string, number> = {
      seconds: 1000,
      minute: 60_000,
      minutes: 60_000,
      hour: 3_600_000
    }
    const documented = referenceTable("Retries")
      .slice(1)
      .map((row) => {
        const [count, unit] = row[1]!.split(" ")
        return Number(count) * units[unit!]!
      })
    assert.deepStrictEqual(documented, [...retryDelaysMillis])
  })
})
