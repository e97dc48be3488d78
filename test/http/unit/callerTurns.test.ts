import { IncomingMessage, ServerResponse } from "node:http"
import { Socket } from "node:net"
import { setImmediate as turn } from "node:timers/promises"
import { afterEach, assert, beforeEach, describe, it, vi } from "vitest"
import { CallerTurns } from "../../../src/http/server/listener/CallerTurns.ts"

/** docs/reference/keys-and-limits.md#shares */

/** Sends requests that arrive in one turn. Returns their callers in starting order, and the responses. */
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
  beforeEach(() => vi.useFakeTimers({ toFake: ["performance"] }))
  afterEach(() => vi.useRealTimers())

  it("is more than 32 requests within 5 ms, and the rest start two in each turn of the event loop", async () => {
    const { started, turns } = arrive(["b", ...burst("a", 37)])
    for (const count of [33, 35, 37, 38, 38]) {
      assert.lengthOf(started, count)
      await turn()
    }
    vi.advanceTimersByTime(6)
    assert.lengthOf(arrive(burst("a", 37), turns).started, 32)
  })

  it("delays no other caller", async () => {
    const { started, turns } = arrive([...burst("a", 40), "b", "c"])
    assert.deepStrictEqual(started.slice(-2), ["b", "c"])
    await turn()
    assert.deepStrictEqual(arrive(["b", "b"], turns).started, ["b", "b"])
  })

  it("keeps its order, even for requests that arrive while others wait", async () => {
    const turns = new CallerTurns()
    const started: Array<number> = []
    const send = (n: number) =>
      turns.run("a", new ServerResponse(new IncomingMessage(new Socket())), () => started.push(n))
    const numbers = Array.from({ length: 44 }, (_, n) => n)
    for (const n of numbers.slice(0, 40)) send(n)
    await turn()
    for (const n of numbers.slice(40)) send(n)
    while (started.length < 44) await turn()
    assert.deepStrictEqual(started, numbers)
  })

  it("does not start a request whose client has left", async () => {
    const { responses, started } = arrive(burst("a", 34))
    responses[32]?.destroy()
    await turn()
    assert.lengthOf(started, 33)
  })

  it("starts at once when no other caller has sent a request for a second", () => {
    const turns = new CallerTurns()
    arrive(["b", "a"], turns)
    vi.advanceTimersByTime(1001)
    assert.lengthOf(arrive(burst("a", 500), turns).started, 500)
  })
})
