import { assert, describe, it } from "@effect/vitest"
import { relay } from "../../../src/passthrough/PassthroughCall.ts"

const retryAfter = (status: number, headers: Record<string, string> = {}) =>
  relay({ accountId: "openai:a", response: { status, headers, body: new Uint8Array() } }).headers[
    "retry-after"
  ]

describe("Retry-After of a relayed response", () => {
  it("is set on 429 and 503: the vendor's own, else what it says in another header, else a second", () => {
    for (const status of [429, 503]) {
      assert.strictEqual(retryAfter(status), "1")
      assert.strictEqual(retryAfter(status, { "retry-after": "30" }), "30")
      assert.strictEqual(retryAfter(status, { "retry-after-ms": "1500" }), "2")
      assert.strictEqual(retryAfter(status, { "retry-after-ms": "0" }), "1")
      assert.strictEqual(retryAfter(status, { "retry-after-ms": "soon" }), "1")
      const date = "Sun, 06 Nov 1994 08:49:37 GMT"
      assert.strictEqual(retryAfter(status, { "retry-after": date }), date)
    }
  })

  it("is not added to other statuses", () => {
    for (const status of [200, 400, 500, 502, 529]) {
      assert.isUndefined(retryAfter(status, { "retry-after-ms": "1500" }))
      assert.strictEqual(retryAfter(status, { "retry-after": "3" }), "3")
    }
  })
})
