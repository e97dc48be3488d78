import { assert, describe, it } from "vitest"
import { RelayedStream } from "../../../src/vendors/upstream/UpstreamExchange.ts"

/** A watch that relays everything, and records how the stream ended. */
const watching = () => {
  const ends: Array<string> = []
  const hold = { isHeld: true, retakes: [] as Array<(isHeld: boolean) => void> }
  const stream = new RelayedStream({
    sent: () => {},
    refused: () => {},
    isHeld: () => hold.isHeld,
    retake: (done) => hold.retakes.push(done),
    lose: () => {
      ends.push("lost")
      return Buffer.from("[lost]")
    },
    push: (chunk) => chunk,
    flush: () => Buffer.from("."),
    ended: (how) => ends.push(how)
  })
  const closed = new Promise<void>((resolve) => stream.once("close", resolve))
  /** The store has answered the first that asked. */
  const answer = (isHeld: boolean) => {
    hold.isHeld = isHeld
    hold.retakes.shift()?.(isHeld)
  }
  return { answer, closed, ends, hold, stream }
}

const textOf = async (stream: RelayedStream) => (await stream.toArray()).join("")

describe("a relayed stream", () => {
  it("may break off before anything reads it: the process continues, and the stream ends as broken", async () => {
    const { closed, ends, stream } = watching()
    stream.breakOff(new Error("reset"))
    await closed
    assert.deepEqual(ends, ["broken"])
  })

  it("relays nothing behind a silence until its hold is taken again", async () => {
    const { answer, ends, hold, stream } = watching()
    assert.isTrue(stream.receive(Buffer.from("a")))
    hold.isHeld = false
    assert.isFalse(stream.receive(Buffer.from("b")))
    assert.isFalse(stream.receive(Buffer.from("c")))
    stream.finish()
    assert.strictEqual(hold.retakes.length, 1)
    assert.strictEqual(String(stream.read()), "a")
    assert.isNull(stream.read())
    assert.isEmpty(ends)
    answer(true)
    assert.strictEqual(await textOf(stream), "bc.")
    assert.deepEqual(ends, ["complete"])
  })

  it("asks also when only its end is behind the silence, and again behind another one", async () => {
    const { answer, ends, hold, stream } = watching()
    stream.receive(Buffer.from("a"))
    hold.isHeld = false
    stream.finish()
    const first = hold.retakes.shift()
    first?.(true)
    assert.strictEqual(hold.retakes.length, 1)
    assert.isEmpty(ends)
    answer(true)
    assert.strictEqual(await textOf(stream), "a.")
    assert.deepEqual(ends, ["complete"])
  })

  it("ends with its error event, and without what waited, when the hold is gone", async () => {
    const { answer, ends, hold, stream } = watching()
    stream.receive(Buffer.from("a"))
    hold.isHeld = false
    stream.receive(Buffer.from("b"))
    answer(false)
    // The upstream, aborted, reports that
    stream.breakOff(new Error("aborted"))
    assert.strictEqual(await textOf(stream), "a[lost]")
    assert.deepEqual(ends, ["lost"])
  })

  it("whose client leaves while it waits ends once", async () => {
    const { answer, closed, ends, hold, stream } = watching()
    hold.isHeld = false
    stream.receive(Buffer.from("a"))
    stream.destroy()
    await closed
    answer(false)
    assert.deepEqual(ends, ["abandoned"])
  })
})
