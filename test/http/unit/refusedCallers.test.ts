import { IncomingMessage, ServerResponse } from "node:http"
import { Socket } from "node:net"
import { afterEach, assert, beforeEach, describe, it, vi } from "vitest"
import { RefusedCallers } from "../../../src/http/server/listener/RefusedCallers.ts"

/** docs/reference/keys-and-limits.md#refused-callers */

class Answer extends ServerResponse {
  constructor() {
    super(new IncomingMessage(new Socket()))
  }
  answer(status: number): void {
    this.statusCode = status
    Object.defineProperty(this, "writableFinished", { value: true })
    this.emit("close")
  }
  leave(): void {
    this.destroy()
    this.emit("close")
  }
}

const refused = (callers: RefusedCallers, name: string, times: number, status = 401) => {
  for (let n = 0; n < times; n += 1) {
    const response = new Answer()
    callers.run(name, response, () => response.answer(status))
  }
}

/** Sends this many requests at once. Returns their responses, and the ones that have started. */
const send = (callers: RefusedCallers, name: string, count: number) => {
  const started: Array<Answer> = []
  const responses = Array.from({ length: count }, () => new Answer())
  const accepted = responses.map((response) =>
    callers.run(name, response, () => started.push(response))
  )
  return { accepted, responses, started }
}

describe("requests of a caller", () => {
  beforeEach(() => vi.useFakeTimers())
  afterEach(() => vi.useRealTimers())

  it("start at once until eight in a row were refused", () => {
    const callers = new RefusedCallers()
    refused(callers, "a", 7)
    assert.lengthOf(send(callers, "a", 5).started, 5)
  })

  it("start one after the other from then on, each when the one before has ended", () => {
    const callers = new RefusedCallers()
    refused(callers, "a", 8)
    vi.runAllTimers()
    const { responses, started } = send(callers, "a", 3)
    for (const count of [1, 2, 3]) {
      assert.deepStrictEqual(started, responses.slice(0, count))
      started.at(-1)?.answer(402)
      vi.advanceTimersByTime(1)
    }
  })

  it("never delay those of another caller", () => {
    const callers = new RefusedCallers()
    refused(callers, "a", 8)
    send(callers, "a", 3)
    assert.lengthOf(send(callers, "b", 3).started, 3)
  })

  it("wait at most 50 ms for one that is not answered", () => {
    const callers = new RefusedCallers()
    refused(callers, "a", 8)
    vi.runAllTimers()
    const { started } = send(callers, "a", 3)
    vi.advanceTimersByTime(49)
    assert.lengthOf(started, 1)
    vi.advanceTimersByTime(2)
    assert.lengthOf(started, 2)
  })

  it("all start when one has succeeded", () => {
    const callers = new RefusedCallers()
    refused(callers, "a", 8)
    vi.runAllTimers()
    const { started } = send(callers, "a", 4)
    started[0]?.answer(200)
    vi.advanceTimersByTime(1)
    assert.lengthOf(started, 4)
    assert.lengthOf(send(callers, "a", 3).started, 3)
  })

  it("are counted neither when the service failed nor when the client left", () => {
    const callers = new RefusedCallers()
    refused(callers, "a", 20, 503)
    for (let n = 0; n < 20; n += 1) {
      const response = new Answer()
      callers.run("a", response, () => response.leave())
    }
    assert.lengthOf(send(callers, "a", 3).started, 3)
  })

  it("are skipped when their client has left", () => {
    const callers = new RefusedCallers()
    refused(callers, "a", 8)
    vi.runAllTimers()
    const { responses, started } = send(callers, "a", 3)
    responses[1]?.leave()
    started[0]?.answer(401)
    vi.advanceTimersByTime(1)
    assert.deepStrictEqual(started, [responses[0], responses[2]])
  })

  it("are refused when 512 wait", () => {
    const callers = new RefusedCallers()
    refused(callers, "a", 8)
    vi.runAllTimers()
    const { accepted } = send(callers, "a", 514)
    assert.deepStrictEqual(accepted.slice(511), [true, true, false])
  })
})
