import { assert, describe, it } from "@effect/vitest"
import { Redacted } from "effect"
import * as fc from "fast-check"
import type { AccountSetting } from "../../../src/domain/Provider.ts"
import { MaskedStream, SecretMask } from "../../../src/vendors/upstream/SecretMask.ts"

/** docs/reference/passthrough.md#what-is-relayed */

const maskOf = (key: string): SecretMask => {
  const account: AccountSetting = {
    id: "openai:one",
    provider: "openai",
    key: Redacted.make(key),
    baseUrl: "https://vendor.example",
    weight: 1
  }
  return SecretMask.of(account)
}

/** Few distinct letters, so that prefixes of the key occur everywhere. */
const key = fc.string({ unit: fc.constantFrom("a", "b"), minLength: 8, maxLength: 12 })

/** The text after each occurrence, from left to right, has been masked. */
const expected = (text: string, key: string) => text.replaceAll(key, "*".repeat(key.length))

describe("the mask of an account's key", () => {
  it("overwrites only the key in a stream, however it is split", () => {
    fc.assert(
      fc.property(
        key.chain((it) =>
          fc.tuple(
            fc.constant(it),
            fc.array(fc.constantFrom(it, "a", "b", "\n", "é", it.slice(0, -1)), { maxLength: 20 }),
            fc.array(fc.integer({ min: 0, max: 9 }), { minLength: 1 })
          )
        ),
        ([key, parts, cuts]) => {
          const body = Buffer.from(parts.join(""))
          const stream = new MaskedStream(maskOf(key))
          const relayed: Array<Buffer> = []
          let at = 0
          for (let turn = 0; at < body.length; turn += 1) {
            const next = at + (cuts[turn % cuts.length] ?? 0) + 1
            const chunk = body.subarray(at, next)
            relayed.push(stream.push(chunk))
            at = next
          }
          relayed.push(stream.flush())
          assert.strictEqual(Buffer.concat(relayed).toString(), expected(body.toString(), key))
          assert.strictEqual(maskOf(key).bytes(body).toString(), expected(body.toString(), key))
        }
      ),
      { numRuns: 3000 }
    )
  })

  it("returns bytes without a key uncopied, and the end of an event at once", () => {
    const mask = maskOf("sk-vendor-of-this-account")
    const event = Buffer.from('data: {"choices":[{"delta":{"content":"sk-v"}}]}\n\n')
    assert.strictEqual(new MaskedStream(mask).push(event).buffer, event.buffer)
    assert.strictEqual(new MaskedStream(mask).push(event).length, event.length)
    assert.strictEqual(mask.bytes(event).buffer, event.buffer)
    const headers = { "x-request-id": "req_1", "set-cookie": ["a", "b"] }
    assert.strictEqual(mask.headers(headers), headers)
  })

  it("does not change the given bytes", () => {
    const body = Buffer.from("the key is sk-vendor-of-this-account!")
    const masked = maskOf("sk-vendor-of-this-account").bytes(body)
    assert.strictEqual(masked.toString(), "the key is *************************!")
    assert.include(body.toString(), "sk-vendor")
  })

  it("overwrites it in headers", () => {
    assert.deepStrictEqual(
      maskOf("sk-vendor").headers({
        "x-echo": "Bearer sk-vendor",
        a: "b",
        "x-list": ["sk-vendor"]
      }),
      { "x-echo": "Bearer *********", a: "b", "x-list": ["*********"] }
    )
  })

  it("does not mask the placeholder of a server without keys, because responses contain the word", () => {
    for (const key of ["none", "EMPTY", "ollama", "x"]) {
      const body = Buffer.from(`The word ${key}`)
      assert.strictEqual(maskOf(key).bytes(body).toString(), `The word ${key}`)
      assert.strictEqual(new MaskedStream(maskOf(key)).push(body).length, body.length)
    }
  })
})
