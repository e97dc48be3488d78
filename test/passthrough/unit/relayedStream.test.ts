import { assert, describe, it } from "vitest"
import { StreamRelay } from "../../../src/vendors/upstream/StreamRelay.ts"

describe("a relayed stream", () => {
  it("may break off before anything reads it: the process continues, and the stream ends as broken", async () => {
    const ends: Array<string> = []
    const relay = new StreamRelay({
      sent: () => {},
      refused: () => {},
      push: (chunk) => chunk,
      flush: () => Buffer.alloc(0),
      readsOn: () => false,
      ended: (how) => ends.push(how)
    })
    const body = relay.open()
    const closed = new Promise<void>((resolve) => body.once("close", resolve))
    relay.breakOff(new Error("reset"))
    await closed
    assert.deepEqual(ends, ["broken"])
  })
})
