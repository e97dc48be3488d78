import { assert, describe, it } from "@effect/vitest"
import { Effect, Option } from "effect"
import { HttpServerRequest } from "effect/http"
import * as fc from "fast-check"
import { isDeepStrictEqual } from "node:util"
import { LongText } from "../../../src/domain/json/LongText.ts"
import { readIdempotencyKey } from "../../../src/http/server/IdempotencyKey.ts"

const hashOf = async (value: unknown, path = "/a") => {
  const request = HttpServerRequest.fromWeb(
    new Request(`http://gateway.test${path}`, {
      method: "POST",
      headers: { "idempotency-key": "k" }
    })
  )
  const key = await Effect.runPromise(readIdempotencyKey(request, { value }))
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
  it("depends on its values: it is equal for equal values in any order, and differs for others", async () => {
    await fc.assert(
      fc.asyncProperty(fc.jsonValue(), fc.jsonValue(), async (one, other) => {
        // -0 and 0 are the same number in JSON
        const [left, right] = [JSON.stringify(one), JSON.stringify(other)].map((text): unknown =>
          JSON.parse(text)
        )
        assert.strictEqual(await hashOf(left), await hashOf(reversed(left)))
        assert.strictEqual(
          (await hashOf(left)) === (await hashOf(right)),
          isDeepStrictEqual(left, right)
        )
      })
    )
    assert.notStrictEqual(await hashOf({ a: ["b", "c"] }), await hashOf({ a: ["b"], c: [] }))
    assert.notStrictEqual(await hashOf(["ab", "c"]), await hashOf(["a", "bc"]))
    assert.notStrictEqual(await hashOf({}), await hashOf([]))
    assert.notStrictEqual(await hashOf("1"), await hashOf(1))
    assert.notStrictEqual(await hashOf({}, "/a"), await hashOf({}, "/b"))
  })

  it("lets others run while it hashes many values and long strings", async () => {
    const value = { zeros: Array.from({ length: 50_000 }, () => 0), text: longText("A", 9_000_000) }
    let turns = 0
    const count = setInterval(() => (turns += 1), 0)
    await hashOf(value)
    clearInterval(count)
    assert.isAbove(turns, 3)
  })

  it("depends on the characters of a long string, however they were escaped", async () => {
    const text = "A".repeat(3_000_000)
    assert.strictEqual(await hashOf({ text: longText("A", 3_000_000) }), await hashOf({ text }))
    const escaped = new LongText(Buffer.from("\\u0041".repeat(3_000_000)))
    assert.strictEqual(await hashOf({ text: escaped }), await hashOf({ text }))
  })
})

const longText = (letter: string, length: number) => new LongText(Buffer.alloc(length, letter))
