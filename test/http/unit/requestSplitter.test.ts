import { assert, describe, it } from "@effect/vitest"
import { RequestSplitter } from "../../../src/http/anthropic/RequestSplitter.ts"

/** Reads a body in pieces of this length: the lines, or what is wrong. */
const read = (body: string, length: number) => {
  const splitter = new RequestSplitter()
  const bytes = Buffer.from(body)
  const found: Array<Uint8Array> = []
  for (let at = 0; at < bytes.length; at += length) {
    const pushed = splitter.push(bytes.subarray(at, at + length))
    if (!Buffer.isBuffer(pushed)) return { fault: pushed }
    found.push(pushed)
  }
  return { fault: splitter.end(), text: Buffer.concat(found).toString() }
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

  it("may begin with a byte order mark", () => {
    const body = `\uFEFF${JSON.stringify({ requests })}`
    const lines = requests.map((it) => `${JSON.stringify(it)}\n`).join("")
    for (const length of [1, 2, 3, 4, 1000]) {
      assert.deepStrictEqual(read(body, length), { fault: undefined, text: lines })
    }
    const cut = new RequestSplitter()
    assert.isString(cut.push(Buffer.from([0xef, 0x7b])))
  })

  it("has a line for each request, also if they are written over several lines", () => {
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
