import { assert, describe, it } from "@effect/vitest"
import { Effect, Result, Stream } from "effect"
import { withoutMarks } from "../../../src/tasks/vendorbatches/Marks.ts"
import { marked, markOf } from "../../../src/vendors/anthropic/AnthropicBatches.ts"

const mark = markOf("00000000-0000-7000-8000-000000000001")

const read = (text: string, length: number) => {
  const bytes = Buffer.from(text)
  const pieces = Array.from({ length: Math.ceil(bytes.length / length) }, (_, n) =>
    bytes.subarray(n * length, (n + 1) * length)
  )
  return Effect.runPromise(
    Effect.result(
      Effect.map(Stream.runCollect(withoutMarks(mark, Stream.fromIterable(pieces))), (chunks) =>
        Buffer.concat([...chunks]).toString()
      )
    )
  )
}

const lineOf = (name: string) => JSON.stringify({ custom_id: name, result: { type: "expired" } })

/** docs/reference/vendors.md#anthropic-batches */
describe("the marks of a batch", () => {
  it("consist of characters that names allow, and differ by task", () => {
    assert.match(mark, /^[\w-]{10}$/u)
    assert.notStrictEqual(mark, markOf("00000000-0000-7000-8000-000000000002"))
  })

  it("are added before a name, however it is written, and change nothing else", () => {
    const lines = ['{"custom_id":"a"}', '{ "params":{"custom_id":"x"}, "custom_id" : "\\u0061" }']
    for (const line of lines) {
      const text = Buffer.from(marked(Buffer.from(line), mark)).toString()
      assert.strictEqual(JSON.parse(text).custom_id, `${mark}a`)
      assert.strictEqual(text.length, line.length + 10)
    }
  })

  it("are removed from results however their bytes are split", async () => {
    const names = ["a", "b", mark, `x${mark}`]
    const given = names.map((name) => `${lineOf(mark + name)}\n`).join("")
    const plain = names.map((name) => `${lineOf(name)}\n`).join("")
    for (let length = 1; length <= given.length; length += 1) {
      assert.strictEqual(Result.getOrThrow(await read(given, length)), plain)
    }
  })

  it("show that a batch is another one if they are missing", async () => {
    for (const text of [`${lineOf("a")}\n`, `${lineOf("a")}\n${lineOf(`${mark}b`)}\n`]) {
      for (let length = 1; length <= text.length; length += 1) {
        const found = await read(text, length)
        if (Result.isSuccess(found)) throw new Error("the results were read")
        assert.strictEqual(found.failure.class, "AMBIGUOUS")
      }
    }
  })
})
