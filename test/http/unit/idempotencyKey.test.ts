import { assert, describe, it } from "@effect/vitest"
import { Effect, Option } from "effect"
import { HttpServerRequest } from "effect/http"
import * as fc from "fast-check"
import { isDeepStrictEqual } from "node:util"
import { readIdempotencyKey } from "../../../src/http/server/IdempotencyKey.ts"

const hashOf = (value: unknown, path = "/a", text = "") => {
  const request = HttpServerRequest.fromWeb(
    new Request(`http://gateway.test${path}`, {
      method: "POST",
      headers: { "idempotency-key": "k" }
    })
  )
  const bytes = new TextEncoder().encode(text)
  const key = Effect.runSync(readIdempotencyKey(request, { bytes, value }))
  return Buffer.from(Option.getOrThrow(key).requestHash).toString("hex")
}

const reversed = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(reversed)
  if (typeof value !== "object" || value === null) return value
  return Object.fromEntries(
    Object.entries(value)
      .toReversed()
      .map(([name, member]) => [name, reversed(member)])
  )
}

describe("the hash of a request with an idempotency key", () => {
  it("is that of its values: equal for equal ones in any order, another for others", () => {
    fc.assert(
      fc.property(fc.jsonValue(), fc.jsonValue(), (one, other) => {
        // -0 and 0 are the same number in JSON
        const [left, right] = [JSON.stringify(one), JSON.stringify(other)].map((text): unknown =>
          JSON.parse(text)
        )
        assert.strictEqual(hashOf(left), hashOf(reversed(left)))
        assert.strictEqual(hashOf(left) === hashOf(right), isDeepStrictEqual(left, right))
      })
    )
    assert.notStrictEqual(hashOf({ a: ["b", "c"] }), hashOf({ a: ["b"], c: [] }))
    assert.notStrictEqual(hashOf(["ab", "c"]), hashOf(["a", "bc"]))
    assert.notStrictEqual(hashOf({}), hashOf([]))
    assert.notStrictEqual(hashOf("1"), hashOf(1))
    assert.notStrictEqual(hashOf({}, "/a"), hashOf({}, "/b"))
  })

  it("of a value nested deeply takes no stack", () => {
    const deep = 100_000
    const value: unknown = JSON.parse("[".repeat(deep) + "]".repeat(deep))
    assert.match(hashOf(value), /^[0-9a-f]{64}$/u)
  })

  it("of a body with very many values is that of its bytes: no value is looked at", () => {
    const unread = new Proxy({}, { ownKeys: () => assert.fail("the value was read") })
    const zeros = (text: string) => `{"prompt":[${"0,".repeat(10_000)}${text}]}`
    assert.strictEqual(hashOf(unread, "/a", zeros("0")), hashOf(unread, "/a", zeros("0")))
    assert.notStrictEqual(hashOf(unread, "/a", zeros("0")), hashOf(unread, "/a", zeros("1")))
    for (const part of ["[],", "[", '{"a":']) {
      assert.strictEqual(hashOf(unread, "/a", part.repeat(10_001)).length, 64)
    }
    const text = ",".repeat(4000) + "A".repeat(1_000_000)
    assert.strictEqual(hashOf({ text }, "/a", `{"text":"${text}"}`), hashOf({ text }))
  })
})
