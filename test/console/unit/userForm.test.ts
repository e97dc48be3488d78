import { assert, describe, it } from "vitest"
import {
  changeOf,
  faultsOf,
  fieldsOf,
  newUserOf
} from "../../../src/console/pages/user/userForm.ts"
import type { User } from "../../../src/console/pages/user/userForm.ts"

const user: User = {
  id: "1",
  email: "a@example.com",
  name: "Ann",
  created_at: "2030-01-01T00:00:00.000Z",
  disabled: false,
  trigger_threshold: "10.00",
  rate_limit_per_minute: 60,
  concurrent_tasks: null
}

describe("the form of a user", () => {
  const fields = fieldsOf(user)

  it("sends only what was changed", () => {
    assert.deepStrictEqual(changeOf(user, fields), {})
    const changed = { ...fields, name: " ", rate: "", tasks: "5", threshold: "0.5" }
    assert.deepStrictEqual(changeOf(user, changed), {
      name: null,
      rate_limit_per_minute: null,
      concurrent_tasks: 5,
      trigger_threshold: "0.5"
    })
    assert.deepStrictEqual(changeOf(user, { ...fields, password: "long enough" }), {
      password: "long enough"
    })
  })

  it("creates a user without a password if none is entered", () => {
    const typed = { ...fieldsOf(undefined), email: " b@example.com " }
    assert.deepStrictEqual(newUserOf(typed), { email: "b@example.com", name: null })
  })

  it("rejects invalid amounts and counts", () => {
    const faulty = { ...fields, threshold: "-1", rate: "0", tasks: "x" }
    assert.sameMembers([...faultsOf(faulty, false).keys()], ["threshold", "rate", "tasks"])
    assert.strictEqual(faultsOf(fields, false).size, 0)
    assert.strictEqual(faultsOf(fieldsOf(undefined), true).size, 0)
  })
})
