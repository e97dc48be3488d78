import { assert, describe, it } from "vitest"
import { dayAfter, daysBetween, isDay } from "../../../src/console/format/days.ts"
import { changeOf, faultsOf, fieldsOf, newKeyOf } from "../../../src/console/pages/keys/keyForm.ts"
import type { ApiKey } from "../../../src/console/pages/keys/keyForm.ts"

const key: ApiKey = {
  id: "key_1",
  preview: "sk-...abcd",
  name: "robot",
  scopes: ["inference"],
  created_at: "2030-01-01T00:00:00.000Z",
  expires_at: "2031-01-01T00:00:12.345Z",
  last_used_at: null,
  spend_limit: "5.00",
  reset: "monthly",
  spent: "1.00",
  held: "0.00",
  remaining: "4.00",
  resets_at: null,
  allowed_models: ["one"],
  rate_limit_per_minute: 60,
  concurrent_tasks: null,
  old_key_expires_at: null
}

describe("the form of a key", () => {
  const fields = fieldsOf(key)

  it("sends only what was changed", () => {
    assert.deepStrictEqual(changeOf(key, fields), {})
    assert.deepStrictEqual(changeOf(key, { ...fields, models: " one \n\ntwo\none" }), {
      allowed_models: ["one", "two"]
    })
    assert.deepStrictEqual(changeOf(key, { ...fields, budget: "", rate: "", expires: "" }), {
      spend_limit: null,
      rate_limit_per_minute: null,
      expires_at: null
    })
    assert.deepStrictEqual(changeOf(key, { ...fields, reset: "daily" }), { reset: "daily" })
    assert.deepStrictEqual(changeOf(key, { ...fields, budget: "6" }), { spend_limit: "6" })
    assert.deepStrictEqual(changeOf(key, { ...fields, budget: "", reset: "daily" }), {
      spend_limit: null
    })
    const unlimited = { ...key, spend_limit: null, reset: null }
    assert.deepStrictEqual(changeOf(unlimited, fields), { spend_limit: "5.00", reset: "monthly" })
    assert.deepStrictEqual(changeOf(unlimited, fieldsOf(unlimited)), {})
  })

  it("creates a key with its limits, and sends a period only with a budget", () => {
    const empty = { ...fieldsOf(undefined), name: " robot " }
    const unlimited = {
      name: "robot",
      scopes: ["inference" as const],
      spend_limit: null,
      allowed_models: null,
      rate_limit_per_minute: null,
      concurrent_tasks: null,
      expires_at: null
    }
    assert.deepStrictEqual(newKeyOf(empty), unlimited)
    assert.deepStrictEqual(newKeyOf({ ...empty, tasks: "3" }), {
      ...unlimited,
      concurrent_tasks: 3
    })
    assert.deepStrictEqual(newKeyOf({ ...empty, budget: "5", reset: "weekly" }), {
      ...unlimited,
      spend_limit: "5",
      reset: "weekly"
    })
  })

  it("rejects invalid amounts and counts", () => {
    const faulty = { ...fields, budget: "5,00", rate: "0", tasks: "1.5" }
    assert.sameMembers([...faultsOf(faulty).keys()], ["budget", "rate", "tasks"])
    assert.strictEqual(faultsOf(fields).size, 0)
  })
})

describe("days", () => {
  it("are counted in UTC across months, up to a maximum", () => {
    assert.strictEqual(dayAfter("2030-03-01", -1), "2030-02-28")
    assert.deepStrictEqual(daysBetween("2030-12-30", "2031-01-01", 9), [
      "2030-12-30",
      "2030-12-31",
      "2031-01-01"
    ])
    assert.deepStrictEqual(daysBetween("2030-01-01", "2031-01-01", 1), ["2031-01-01"])
    assert.deepStrictEqual(daysBetween("2031-01-02", "2031-01-01", 9), [])
    assert.isFalse(isDay("2030-13-01"))
  })
})
