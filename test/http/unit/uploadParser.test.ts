import { assert, describe, it } from "@effect/vitest"
import { UploadParser } from "../../../src/http/openai/UploadParser.ts"

const boundary = "x-1"
const content = "line 1\r\n--x-\r\nline 2\n\r\n--x"

const part = (head: string, text: string) =>
  `--${boundary}\r\nContent-Disposition: form-data; ${head}\r\n\r\n${text}\r\n`
const purpose = part('name="purpose"', "batch")
const file = part('name="file"; filename="a \\"b\\".jsonl"\r\nContent-Type: text/plain', content)
const end = `--${boundary}--\r\n`

/** Reads a form in pieces of this length. Returns the file or the fault. */
const read = (form: string, length: number) => {
  const parser = new UploadParser(boundary)
  const bytes = Buffer.from(form)
  const found: Array<Uint8Array> = []
  for (let at = 0; at < bytes.length; at += length) {
    const pushed = parser.push(bytes.subarray(at, at + length))
    if (typeof pushed === "string") return { fault: pushed, parser }
    found.push(pushed)
  }
  return { fault: parser.end(), text: Buffer.concat(found).toString(), parser }
}

/** docs/reference/files.md#uploads */
describe("a form with a file", () => {
  it("has the same file and fields however its bytes are split", () => {
    for (const form of [`${purpose}${file}${end}`, `${file}${purpose}${end}`]) {
      for (let length = 1; length <= form.length; length += 1) {
        const { fault, parser, text } = read(form, length)
        assert.isUndefined(fault)
        assert.strictEqual(text, content)
        assert.strictEqual(parser.filename, 'a "b".jsonl')
        assert.deepStrictEqual([...parser.fields], [["purpose", "batch"]])
      }
    }
  })

  it.each([
    ["breaks off", `${purpose}${file}`],
    ["breaks off within the headers of a part", `--${boundary}\r\nContent-Dis`],
    ["has two files", `${file}${file}${end}`],
    ["has a file of another name", `${part('name="files"; filename="a"', "")}${end}`],
    ["has a part without a name", `--${boundary}\r\nX: y\r\n\r\n\r\n${end}`],
    ["has long fields", `${part('name="a"', "x".repeat(70_000))}${end}`],
    ["has long headers", `--${boundary}\r\nX: ${"y".repeat(20_000)}\r\n\r\n`],
    ["has many parts", `${purpose.repeat(20)}${end}`],
    ["is none", "x".repeat(100)]
  ])("is refused if it %s", (_what, form) => {
    for (const length of [1, 7, 4096, form.length]) assert.isString(read(form, length).fault)
  })

  it("has no file if there is none", () => {
    const { fault, parser } = read(`${purpose}${end}`, 5)
    assert.isUndefined(fault)
    assert.isUndefined(parser.filename)
  })
})
