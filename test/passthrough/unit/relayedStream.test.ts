import type { Readable } from "node:stream"
import { assert, describe, it } from "vitest"
import { StreamRelay } from "../../../src/vendors/upstream/StreamRelay.ts"

/** A watch that relays everything and records how the stream ended. */
const watching = (readsOn = false) => {
  const ends: Array<string> = []
  const hold = { isHeld: true, retakes: [] as Array<(isHeld: boolean) => void> }
  const relay = new StreamRelay({
    sent: () => {},
    refused: () => {},
    document: () => {},
    isHeld: () => hold.isHeld,
    retake: (done) => hold.retakes.push(done),
    lose: () => {
      ends.push("lost")
      return Buffer.from("[lost]")
    },
    push: (chunk) => chunk,
    flush: () => Buffer.from("."),
    readsOn: () => readsOn,
    ended: (how) => ends.push(how)
  })
  const stream = relay.open()
  const closed = new Promise<void>((resolve) => stream.once("close", resolve))
  /** Lets the store respond to the first waiting request. */
  const answer = (isHeld: boolean) => {
    hold.isHeld = isHeld
    hold.retakes.shift()?.(isHeld)
  }
  return { answer, closed, ends, hold, relay, stream }
}

const textOf = async (stream: Readable) => (await stream.toArray()).join("")

describe("a relayed stream", () => {
  it("may break off before anything reads it: the process continues, and the stream ends as broken", async () => {
    const { closed, ends, relay } = watching()
    relay.breakOff(new Error("reset"))
    await closed
    assert.deepEqual(ends, ["broken"])
  })

  it("relays nothing after a silence until its hold is taken again", async () => {
    const { answer, ends, hold, relay, stream } = watching()
    assert.isTrue(relay.receive(Buffer.from("a")))
    hold.isHeld = false
    assert.isFalse(relay.receive(Buffer.from("b")))
    assert.isFalse(relay.receive(Buffer.from("c")))
    relay.finish()
    assert.strictEqual(hold.retakes.length, 1)
    assert.strictEqual(String(stream.read()), "a")
    assert.isNull(stream.read())
    assert.isEmpty(ends)
    answer(true)
    assert.strictEqual(await textOf(stream), "bc.")
    assert.deepEqual(ends, ["complete"])
  })

  it("asks for its hold even if only its end comes after the silence, and again after another silence", async () => {
    const { answer, ends, hold, relay, stream } = watching()
    relay.receive(Buffer.from("a"))
    hold.isHeld = false
    relay.finish()
    const first = hold.retakes.shift()
    first?.(true)
    assert.strictEqual(hold.retakes.length, 1)
    assert.isEmpty(ends)
    answer(true)
    assert.strictEqual(await textOf(stream), "a.")
    assert.deepEqual(ends, ["complete"])
  })

  it("ends with its error event, and without what waited, when the hold is gone", async () => {
    const { answer, ends, hold, relay, stream } = watching()
    relay.receive(Buffer.from("a"))
    hold.isHeld = false
    relay.receive(Buffer.from("b"))
    answer(false)
    // The upstream reports that it was aborted
    relay.breakOff(new Error("aborted"))
    assert.strictEqual(await textOf(stream), "a[lost]")
    assert.deepEqual(ends, ["lost"])
  })

  it("ends once if its client leaves while it waits", async () => {
    const { answer, closed, ends, hold, relay, stream } = watching()
    hold.isHeld = false
    relay.receive(Buffer.from("a"))
    stream.destroy()
    await closed
    answer(false)
    assert.deepEqual(ends, ["abandoned"])
  })

  it("is read on without its hold if its client leaves while it waits and usage is hidden", async () => {
    const { answer, closed, ends, hold, relay, stream } = watching(true)
    hold.isHeld = false
    relay.receive(Buffer.from("a"))
    stream.destroy()
    await closed
    assert.isTrue(relay.receive(Buffer.from("b")))
    relay.finish()
    answer(false)
    assert.deepEqual(ends, ["complete"])
  })
})
