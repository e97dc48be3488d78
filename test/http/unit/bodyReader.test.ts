import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { IncomingMessage } from "node:http"
import { Socket } from "node:net"
import { CollectedBody, readSource } from "../../../src/http/server/bodies/BodyReader.ts"

const requestOf = (chunks: ReadonlyArray<Buffer>) => {
  const request = new IncomingMessage(new Socket())
  for (const chunk of chunks) request.push(chunk)
  request.push(null)
  return request
}

const chunksOf = (count: number, bytes: number) =>
  Array.from({ length: count }, (_, n) => Buffer.alloc(bytes, n + 1))

const kibi = 1024
const unwatched = { add: () => undefined }

describe("the body of a request", () => {
  it.effect("is complete even if its source ends before the last chunks are read", () =>
    Effect.gen(function* () {
      for (const bytes of [1, 15 * kibi, 16 * kibi, 64 * kibi]) {
        const chunks = chunksOf(5, bytes)
        const read = yield* readSource(requestOf(chunks), unwatched, Infinity)
        assert.isTrue(Buffer.concat(chunks).equals(read), `${bytes} bytes`)
      }
    })
  )

  it.effect("keeps its order when small chunks follow large ones", () =>
    Effect.gen(function* () {
      const chunks = [64, 1, 20, 1, 1].map((size, n) => Buffer.alloc(size * kibi, n + 1))
      const read = yield* readSource(requestOf(chunks), unwatched, Infinity)
      assert.isTrue(Buffer.concat(chunks).equals(read))
    })
  )

  it.effect("is refused at the chunk in which a fault shows", () =>
    Effect.gen(function* () {
      const seen: Array<number> = []
      const watch = {
        add: ([first = 0]: Uint8Array) => {
          seen.push(first)
          return first === 3 ? "Too complex" : undefined
        }
      }
      const fault = yield* Effect.flip(
        readSource(requestOf(chunksOf(5, 64 * kibi)), watch, Infinity)
      )
      assert.strictEqual(fault.code, 2002)
      assert.deepStrictEqual(seen, [1, 2, 3])
    })
  )

  it("takes memory for its announced length only once a MiB has arrived", () => {
    const memoryAfter = (chunks: number) => {
      const body = new CollectedBody(`${100 * 1024 * kibi}`, Infinity)
      for (const chunk of chunksOf(chunks, 64 * kibi)) assert.isTrue(body.add(chunk))
      const blocks = body.take()
      assert.strictEqual(
        blocks.reduce((sum, { length }) => sum + length, 0),
        chunks * 64 * kibi
      )
      return blocks.reduce((sum, { buffer }) => sum + buffer.byteLength, 0)
    }
    assert.strictEqual(memoryAfter(16), 1024 * kibi)
    assert.strictEqual(memoryAfter(17), 100 * 1024 * kibi)
  })
})
