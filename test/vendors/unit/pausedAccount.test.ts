import { assert, describe, it } from "@effect/vitest"
import { Redacted } from "effect"
import { TrackedAccount, stateOf } from "../../../src/vendors/accounts/TrackedAccount.ts"

/** docs/reference/vendors.md#accounts */
describe("a paused account", () => {
  const accountOf = () =>
    new TrackedAccount({
      id: "openai:a",
      provider: "openai",
      key: Redacted.make("sk-test"),
      baseUrl: "https://vendor.example/v1",
      weight: 1
    })

  it("is paused only for the time that the vendor requested, even if the clock was set back", () => {
    const hour = 3_600_000
    const account = accountOf()
    const pause = { id: "openai:a", model: "a", millis: 2000, isUsedUp: true }
    account.apply({ _tag: "Paused", ...pause }, hour)
    assert.strictEqual(account.pausedMillis("a", hour + 500), 1500)
    assert.strictEqual(account.pausedMillis("a", hour + 2000), 0)
    assert.strictEqual(account.pausedMillis("a", 0), 0)
    assert.strictEqual(stateOf(account, 0).pausedMillis, 0)
  })

  it("is shown as paused for a minute after its key was refused", () => {
    const account = accountOf()
    account.apply({ _tag: "Refused", id: "openai:a", user: null }, 0)
    assert.strictEqual(stateOf(account, 15_000).pausedMillis, 45_000)
  })
})
