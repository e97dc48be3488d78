import { assert, describe, it } from "vitest"
import { RelayedStream } from "../../../src/vendors/upstream/UpstreamExchange.ts"

describe("a relayed stream", () => {
  it("may break off before anything reads it: the process continues, and the stream ends as broken", async () => {
    const ends: Array<string> = []
    const stream = new RelayedStream({
      sent: () => {},
      refused: () => {},
      push: (chunk) => chunk,
      flush: () => Buffer.alloc(0),
      ended: (how) => ends.push(how)
    })
    const closed = new Promise<void>((resolve) => stream.once("close", resolve))
    stream.breakOff(new Error("reset"))
    await closed
    assert.deepEqual(ends, ["broken"])
  })
})
