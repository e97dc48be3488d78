import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { keptText } from "../../../src/users/contents/KeptText.ts"
import { cpuMillis } from "../../support/cpuTime.ts"

/** docs/reference/passthrough.md#requests-and-responses: R-PRIVACY-6 */

const bytesMax = 64 * 1024
const kept = (body: unknown, max = bytesMax) => keptText(Buffer.from(JSON.stringify(body)), max)
const shown = (body: unknown) => JSON.parse(kept(body).text)

describe("the text that is kept of a body", () => {
  it("is the body, if it has no media and no credentials", () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        const text = JSON.stringify(value)
        fc.pre(!/authorization|password|secret|cookie|key|token|headers/iu.test(text))
        assert.deepStrictEqual(keptText(Buffer.from(text), bytesMax), { text, truncated: false })
      })
    )
  })

  it("refers to media by their type and size", () => {
    const png = Buffer.alloc(3000, 7).toString("base64")
    assert.deepStrictEqual(
      shown({ messages: [{ url: `data:image/png;base64,${png}` }, { data: png }], text: "short" }),
      {
        messages: [{ url: "[image/png, 3000 bytes]" }, { data: "[base64, 3000 bytes]" }],
        text: "short"
      }
    )
  })

  it("keeps long texts, and strings that only begin like media", () => {
    const text = "one two ".repeat(1000)
    const quoted = `data:${"a".repeat(200)}"${"b ".repeat(2000)}`
    assert.deepStrictEqual(shown({ text, quoted }), { text, quoted })
  })

  it("hides credentials, wherever they are and however their names are written", () => {
    const body = `{"tools":[{"type":"mcp","authorization":"Bearer a","headers":{"X-Auth":"b","deep":{"c":"d"}},
      "name":"n"},{"api_k\\u0065y":"e"},"kept"],"logprobs":[{"token":"kept"}],"password":["f","g"]}`
    const { text } = keptText(Buffer.from(body), bytesMax)
    assert.deepStrictEqual(JSON.parse(text), {
      tools: [
        {
          type: "mcp",
          authorization: "[hidden]",
          headers: { "X-Auth": "[hidden]", deep: { c: "[hidden]" } },
          name: "n"
        },
        { api_key: "[hidden]" },
        "kept"
      ],
      logprobs: [{ token: "kept" }],
      password: ["[hidden]", "[hidden]"]
    })
  })

  it("never exceeds the limit, says if it is cut off, and cuts no character in two", () => {
    fc.assert(
      fc.property(
        fc.string({ unit: "grapheme", maxLength: 300 }),
        fc.integer({ min: 1, max: 200 }),
        (value, max) => {
          const whole = JSON.stringify({ value })
          const { text, truncated } = kept({ value }, max)
          assert.isAtMost(Buffer.byteLength(text), max)
          assert.isTrue(whole.startsWith(text))
          assert.strictEqual(truncated, text !== whole)
        }
      )
    )
  })

  it("is the whole body up to exactly the limit", () => {
    for (const text of ['{"value":"ab"}', "[1,1,1]", '"ab"']) {
      const keptOf = (max: number) => keptText(Buffer.from(text), max)
      assert.deepStrictEqual(keptOf(text.length), { text, truncated: false })
      assert.deepStrictEqual(keptOf(text.length - 1), {
        text: text.slice(0, -1),
        truncated: true
      })
    }
  })

  it("reads media in events, also if the last one is cut off", () => {
    const media = "QUJD".repeat(1000)
    const body = `data: {"audio":"${media}"}\n\ndata: {"audio":"${media.slice(0, 2000)}`
    assert.deepStrictEqual(keptText(Buffer.from(body), bytesMax), {
      text: 'data: {"audio":"[base64, 3000 bytes]"}\n\ndata: {"audio":"[base64, 1500 bytes]"',
      truncated: false
    })
  })

  it("costs no more for a large body than for its beginning", () => {
    const hostile = [
      Buffer.from(`{"a":"${String.raw`\"`.repeat(16 * 1024 * 1024)}"}`),
      Buffer.from(`{"a":"${"\\".repeat(32 * 1024 * 1024)}"}`),
      Buffer.from(`[${"1,".repeat(16 * 1024 * 1024)}1]`),
      Buffer.from(`{"a":"data:${String.raw`x\"`.repeat(8 * 1024 * 1024)}"}`),
      Buffer.alloc(32 * 1024 * 1024, "{")
    ]
    // The first runs compile
    const leastMillis = (body: Uint8Array) =>
      Math.min(
        ...Array.from({ length: 5 }, () => {
          const begun = cpuMillis()
          assert.isTrue(keptText(body, bytesMax).truncated)
          return cpuMillis() - begun
        })
      )
    for (const body of hostile) {
      // A cost proportional to the body would be 128 times as high
      const beginning = leastMillis(body.subarray(0, 4 * bytesMax))
      assert.isBelow(leastMillis(body), 16 * Math.max(beginning, 0.5))
    }
  })
})
