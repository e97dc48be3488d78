import { assert, describe, it } from "@effect/vitest"
import { accountRefusal } from "../../../src/vendors/accounts/AccountRefusal.ts"

const answer = (status: number, error: object) => ({
  status,
  headers: {},
  body: Buffer.from(JSON.stringify({ error }))
})

describe("a refused account", () => {
  it("is recognized by its status, or by the vendors' texts with another status", () => {
    const refusals: ReadonlyArray<readonly [number, object]> = [
      [401, { message: "Incorrect API key provided" }],
      [402, { message: "Payment required" }],
      [400, { message: "API key not valid. Please pass a valid API key." }],
      [400, { message: "API key expired. Please renew the API key." }],
      [400, { type: "invalid_request_error", message: "Your credit balance is too low to access" }],
      [429, { message: "You exceeded your current quota", code: "insufficient_quota" }]
    ]
    for (const [status, error] of refusals)
      assert.strictEqual(accountRefusal(answer(status, error)), "account", JSON.stringify(error))
  })

  it("is not recognized if an error quotes the client or if the account is only busy", () => {
    const others: ReadonlyArray<readonly [number, object]> = [
      [400, { message: "Invalid value: 'API key not valid'" }],
      [400, { message: "No: your credit balance is too low", code: "bad" }],
      [429, { message: "Rate limit reached", code: "rate_limit_exceeded" }],
      [200, { message: "API key not valid" }],
      [500, { message: "API key not valid" }],
      [400, { message: "API key not valid", padding: "x".repeat(16 * 1024) }]
    ]
    for (const [status, error] of others)
      assert.isUndefined(accountRefusal(answer(status, error)), JSON.stringify(error))
  })

  it("is distinguished from a key that lacks the scope of one route", () => {
    const message =
      "You have insufficient permissions for this operation. Missing scopes: model.read"
    assert.strictEqual(accountRefusal(answer(401, { message, code: null })), "scope")
  })
})
