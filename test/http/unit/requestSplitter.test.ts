import { assert, describe, it } from "@effect/vitest"
import { RequestSplitter } from "../../../src/http/anthropic/RequestSplitter.ts"

interface Read {
  readonly fault: unknown
  readonly text?: string
  readonly webhook?: string
}

/** Reads a body in pieces of this length. Returns the lines or the fault. */
const read = (body: string, length: number): Read => {
  const splitter = new RequestSplitter()
  const bytes = Buffer.from(body)
  const found: Array<Uint8Array> = []
  for (let at = 0; at < bytes.length; at += length) {
    const pushed = splitter.push(bytes.subarray(at, at + length))
    if (!Buffer.isBuffer(pushed)) return { fault: pushed }
    found.push(pushed)
  }
  const { webhook } = splitter
  return {
    fault: splitter.end(),
    text: Buffer.concat(found).toString(),
    ...(webhook === undefined ? {} : { webhook: webhook.toString() })
  }
}

const requests = [
  { custom_id: "a", params: { messages: [{ content: 'a "b" \\ \\" {[}] \n é' }] } },
  { custom_id: "b", params: {} }
]

/** docs/reference/vendor-batches.md#anthropics-form */
describe("a body with requests", () => {
  it("has the same lines however its bytes are split", () => {
    const lines = requests.map((it) => `${JSON.stringify(it)}\n`).join("")
    const body = ` {\n"requests" : [ ${requests.map((it) => JSON.stringify(it)).join(" ,\n")} ] } \n`
    for (let length = 1; length <= body.length; length += 1) {
      assert.deepStrictEqual(read(body, length), { fault: undefined, text: lines })
    }
  })

  it("may have a webhook before its requests or after them", () => {
    const webhook = '{ "url": "https://example.com/\\"}", "events": ["task.failed"] }'
    const list = JSON.stringify(requests)
    const text = requests.map((it) => `${JSON.stringify(it)}\n`).join("")
    for (const body of [
      `{"webhook" : ${webhook}, "requests":${list}}`,
      `{"requests":${list} , "webhook":${webhook} }`
    ]) {
      for (let length = 1; length <= body.length; length += 1) {
        assert.deepStrictEqual(read(body, length), { fault: undefined, text, webhook })
      }
    }
  })

  it("may have null as its webhook, which counts as absent", () => {
    const list = JSON.stringify(requests)
    const text = requests.map((it) => `${JSON.stringify(it)}\n`).join("")
    for (const body of [
      `{"webhook" : null , "requests":${list}}`,
      `{"requests":${list},"webhook":null}`
    ]) {
      for (let length = 1; length <= body.length; length += 1) {
        assert.deepStrictEqual(read(body, length), { fault: undefined, text })
      }
    }
  })

  it("has a webhook of at most 16 KiB", () => {
    const body = (bytes: number) =>
      `{"webhook":{"url":"${"x".repeat(bytes - 10)}"},"requests":[{}]}`
    for (const length of [1, 1000, 65_536]) {
      assert.isUndefined(read(body(16_384), length).fault)
      assert.deepStrictEqual(read(body(16_385), length).fault, {
        pointer: "#/webhook",
        detail: "Expected at most 16384 bytes"
      })
    }
  })

  it("may begin with a byte order mark", () => {
    const body = `\uFEFF${JSON.stringify({ requests })}`
    const lines = requests.map((it) => `${JSON.stringify(it)}\n`).join("")
    for (const length of [1, 2, 3, 4, 1000]) {
      assert.deepStrictEqual(read(body, length), { fault: undefined, text: lines })
    }
    const cut = new RequestSplitter()
    assert.isString(cut.push(Buffer.from([0xef, 0x7b])))
  })

  it("has a line for each request, even if the requests are written over several lines", () => {
    const { fault, text = "" } = read(JSON.stringify({ requests }, null, 2), 7)
    assert.isUndefined(fault)
    assert.deepStrictEqual(
      text
        .trimEnd()
        .split("\n")
        .map((line) => JSON.parse(line)),
      requests
    )
  })

  it.each([
    "",
    " ",
    "[]",
    "{}",
    '{"requests"}',
    '{"requests":{}}',
    '{"requests":[1]}',
    '{"requests":[{}',
    '{"requests":[{"a":"',
    '{"requests":[{},]}',
    '{"requests":[,{}]}',
    '{"requests":[{}{}]}',
    '{"requests":[{}]',
    '{"requests":[{}]}}',
    '{"requests":[{}],"requests":[{}]}',
    '{"other":[{}]}',
    '{"webhook":{}}',
    '{"webhook":{},"requests":[{}],"webhook":{}}',
    '{"webhook":{}"requests":[{}]}',
    '{"webhook":{},,"requests":[{}]}',
    '{"requests":[{}],}',
    '{"webhook":[],"requests":[{}]}',
    '{"webhook":"x","requests":[{}]}',
    '{"webhook":nul,"requests":[{}]}',
    '{"webhook":n ull,"requests":[{}]}',
    '{"webhook":nullnull,"requests":[{}]}',
    '{"webhook":null,"requests":[{}],"webhook":null}',
    '{"webhook":null,"requests":[{}],"webhook":{}}',
    '{"requests":[{}],"webhook":null',
    '{"requests":[{}],"webhook":{',
    `{"${"x".repeat(300)}":[{}]}`,
    '{"requests":[{"a":"b\nc"}]}'
  ])("refuses %s", (body) => {
    for (let length = 1; length <= body.length + 1; length += 3) {
      assert.isDefined(read(body, length).fault, `in pieces of ${length}`)
    }
  })

  it("refuses more requests than a batch may have", () => {
    const body = (count: number) => `{"requests":[${"{},".repeat(count - 1)}{}]}`
    assert.isUndefined(read(body(100_000), 65_536).fault)
    assert.deepStrictEqual(read(body(100_001), 65_536).fault, {
      pointer: "#/requests",
      detail: "Expected at most 100000 requests"
    })
  })
})
