import { IncomingMessage, ServerResponse } from "node:http"
import { Socket } from "node:net"
import { setImmediate as turn } from "node:timers/promises"
import { afterEach, assert, describe, it, vi } from "vitest"
import { CallerTurns } from "../../../src/http/server/listener/CallerTurns.ts"

/** docs/reference/keys-and-limits.md#shares */

/** Sends requests that arrive in one turn. Returns their callers in the order in which they start, and the responses. */
const arrive = (callers: ReadonlyArray<string>, turns = new CallerTurns()) => {
  const started: Array<string> = []
  const responses = callers.map((caller) => {
    const response = new ServerResponse(new IncomingMessage(new Socket()))
    turns.run(caller, response, () => started.push(caller))
    return response
  })
  return { responses, started, turns }
}

const burst = (caller: string, count: number) => Array.from({ length: count }, () => caller)

describe("a burst of one caller", () => {
  afterEach(() => vi.useRealTimers())

  it("starts two requests in each turn of the event loop, the other callers' in the turn in which they arrive", async () => {
    const { started, turns } = arrive([...burst("a", 7), "b", "c"])
    assert.deepStrictEqual(started, ["a", "a", "b", "c"])
    await turn()
    assert.strictEqual(started.join(""), "aabcaa")
    assert.deepStrictEqual(arrive(["b", "b"], turns).started, ["b", "b"])
    await turn()
    await turn()
    assert.strictEqual(started.join(""), "aabcaaaaa")
  })

  it("keeps its order, also for requests that arrive while others wait", async () => {
    const turns = new CallerTurns()
    const started: Array<number> = []
    const send = (n: number) =>
      turns.run("a", new ServerResponse(new IncomingMessage(new Socket())), () => started.push(n))
    for (let n = 0; n < 5; n += 1) send(n)
    await turn()
    for (let n = 5; n < 8; n += 1) send(n)
    while (started.length < 8) await turn()
    assert.deepStrictEqual(started, [0, 1, 2, 3, 4, 5, 6, 7])
  })

  it("does not start a request whose client has left", async () => {
    const { responses, started } = arrive(burst("a", 4))
    responses[2]?.destroy()
    await turn()
    assert.lengthOf(started, 3)
  })

  it("starts at once when no other caller has sent a request for a second", () => {
    vi.useFakeTimers({ toFake: ["performance", "setImmediate"] })
    const turns = new CallerTurns()
    arrive(["b", "a"], turns)
    const { started } = arrive(burst("a", 3), turns)
    assert.lengthOf(started, 1)
    vi.advanceTimersByTime(1001)
    assert.lengthOf(arrive(burst("a", 50), turns).started, 50)
  })
})
