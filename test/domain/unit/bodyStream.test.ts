import { assert, describe, it } from "@effect/vitest"
import { Duration, Effect, Fiber, Stream } from "effect"
import { TestClock } from "effect/testing"
import { PassThrough } from "node:stream"
import { bodyStream } from "../../../src/domain/BodyStream.ts"

const bytesOf = (body: PassThrough) =>
  bodyStream(body, {
    silenceMax: Duration.seconds(30),
    onSilence: () => "silent",
    onBroken: (cause) => `broken: ${cause instanceof Error ? cause.message : "unknown"}`
  })

/** Reads to the end. Returns what was read and how the stream ended. */
const reading = Effect.fnUntraced(function* (body: PassThrough) {
  const read: Array<string> = []
  const fiber = yield* Effect.forkChild(
    Effect.match(
      Stream.runForEach(bytesOf(body), (chunk) =>
        Effect.sync(() => void read.push(Buffer.from(chunk).toString()))
      ),
      { onFailure: (why) => why, onSuccess: () => "end" }
    )
  )
  return { read, end: Fiber.join(fiber), isOpen: () => fiber.pollUnsafe() === undefined }
})

/** Stream events come in later turns of the event loop. */
const turns = Effect.promise(async () => {
  for (let n = 0; n < 5; n += 1) await new Promise((resolve) => setImmediate(resolve))
})

describe("the bytes of a response", () => {
  it.effect("are delivered as they arrive, including those from before the first read", () =>
    Effect.gen(function* () {
      const body = new PassThrough()
      body.write("a")
      yield* turns
      const { end, isOpen, read } = yield* reading(body)
      yield* turns
      assert.deepStrictEqual(read, ["a"])
      body.write("b")
      yield* turns
      body.write("c")
      yield* turns
      assert.deepStrictEqual(read, ["a", "b", "c"])
      assert.isTrue(isOpen())
      body.end("d")
      assert.strictEqual(yield* end, "end")
      assert.strictEqual(read.join(""), "abcd")
    })
  )

  it.effect("end at once if there are none or the body has already ended", () =>
    Effect.gen(function* () {
      const empty = new PassThrough()
      empty.end()
      assert.strictEqual(yield* (yield* reading(empty)).end, "end")
      const ended = new PassThrough()
      ended.resume()
      ended.end("a")
      yield* turns
      assert.strictEqual(yield* (yield* reading(ended)).end, "end")
    })
  )

  it.effect("fail after 30 seconds without a byte", () =>
    Effect.gen(function* () {
      const body = new PassThrough()
      const { end, isOpen, read } = yield* reading(body)
      for (const text of ["a", "b", "c"]) {
        yield* TestClock.adjust("29 seconds")
        body.write(text)
        yield* turns
      }
      assert.deepStrictEqual(read, ["a", "b", "c"])
      yield* TestClock.adjust("29 seconds")
      assert.isTrue(isOpen())
      yield* TestClock.adjust("1 second")
      assert.strictEqual(yield* end, "silent")
    })
  )

  it.effect("fail if the connection breaks, instead of ending as if they were complete", () =>
    Effect.gen(function* () {
      for (const [error, expected] of [
        [new Error("reset"), "broken: reset"],
        [undefined, "broken: The connection closed"]
      ] as const) {
        const early = new PassThrough()
        early.on("error", () => {})
        early.destroy(error)
        yield* turns
        assert.strictEqual(yield* (yield* reading(early)).end, expected)
        const body = new PassThrough()
        const { end, read } = yield* reading(body)
        body.write("a")
        yield* turns
        body.destroy(error)
        assert.strictEqual(yield* end, expected)
        assert.deepStrictEqual(read, ["a"])
      }
    })
  )

  it.effect("are not read ahead of their reader", () =>
    Effect.gen(function* () {
      const body = new PassThrough({ highWaterMark: 1000 })
      let written = 0
      const write = () => {
        while (written < 100 && body.write(Buffer.alloc(1000))) written += 1
        if (written < 100) body.once("drain", write)
      }
      write()
      const first = yield* Stream.runHead(bytesOf(body))
      assert.strictEqual(first._tag, "Some")
      yield* turns
      assert.isBelow(written, 10)
      body.destroy()
    })
  )
})
