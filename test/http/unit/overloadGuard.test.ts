import { assert, describe, it } from "@effect/vitest"
import { IncomingMessage, ServerResponse } from "node:http"
import { Socket } from "node:net"
import { vi } from "vitest"
import { makeOverloadGuard } from "../../../src/http/server/listener/OverloadGuard.ts"
import { AdmissionLimiter } from "../../../src/process/admission/AdmissionLimiter.ts"
import { limiterOf } from "../../support/admission.ts"

const oneCaller = () => "user"
const full = () => limiterOf({ least: 0, usual: 0, most: 0 })
const free = () => limiterOf({ least: 128, usual: 128, most: 512 })

const requestOf = (method: string, url: string) =>
  Object.assign(new IncomingMessage(new Socket()), { method, url })

const isAdmitted = (kind: "creates" | "calls", method: string, url: string) => {
  const admission = { creates: free(), calls: free(), [kind]: full() }
  const request = requestOf(method, url)
  return makeOverloadGuard(admission, oneCaller, () => {})(request, new ServerResponse(request))
}

/** docs/reference/http.md#overload */
describe("a process without capacity for creates", () => {
  it("refuses requests that are or may be a create", () => {
    for (const url of [
      "/vendors/alibaba/v1/text-to-image-max/generation",
      "/vendors/alibaba/v1/image-edit/edit?dry_run=true",
      "/v1/images/generations",
      "/v1/images/edits",
      "/v1/videos",
      "/manage/v1/task-batches",
      "/mcp",
      "/mcp?a=b"
    ]) {
      assert.isFalse(isAdmitted("creates", "POST", url), url)
      assert.isTrue(isAdmitted("calls", "POST", url), url)
    }
  })
  it("refuses nothing else", () => {
    for (const [method, url] of [
      ["GET", "/mcp"],
      ["POST", "/mcpx"],
      ["POST", "/manage/v1/api-keys"],
      ["POST", "/manage/v1/task-batches/tb_0/cancel"],
      ["POST", "/v1/chat/completions"],
      ["DELETE", "/vendors/alibaba/v1/text-to-image-max/generation/1"]
    ] as const) {
      assert.isTrue(isAdmitted("creates", method, url), `${method} ${url}`)
    }
    assert.isFalse(isAdmitted("calls", "POST", "/v1/chat/completions"))
  })
})

/** docs/reference/http.md#overload */
describe("a process without capacity for calls", () => {
  it("refuses no cancel, and nothing else about existing objects", () => {
    for (const base of ["/v1", "/vendors/openai/v1"]) {
      assert.isTrue(isAdmitted("calls", "POST", `${base}/responses/resp_1/cancel`), base)
      assert.isTrue(isAdmitted("calls", "POST", `${base}/batches/batch_1/cancel?a=b`), base)
      assert.isFalse(isAdmitted("calls", "POST", `${base}/responses`), base)
    }
    for (const base of ["/v1", "/vendors/anthropic/v1"]) {
      assert.isTrue(isAdmitted("calls", "POST", `${base}/messages/batches/msgbatch_1/cancel`), base)
    }
    assert.isTrue(isAdmitted("calls", "POST", "/v1/videos/1/remix"))
    assert.isFalse(isAdmitted("calls", "POST", "/v1/chat/completions/1/cancel"))
  })
})

/** The durations in milliseconds of turns in which it admitted something. */
class Measured extends AdmissionLimiter {
  readonly turns: Array<number> = []
  #admitted = 0
  override admit(caller: string): boolean {
    this.#admitted += 1
    return super.admit(caller)
  }
  override turn(nowMillis: number, tookMillis: number): void {
    if (this.#admitted > 0) this.turns.push(tookMillis)
    this.#admitted = 0
    super.turn(nowMillis, tookMillis)
  }
}

const immediate = () => new Promise<void>((resolve) => setImmediate(resolve))

const busy = (millis: number) => {
  for (const until = performance.now() + millis; performance.now() < until;);
}

/** ADR 0207 */
describe("the turn of the loop after one that admitted work", () => {
  it("is measured from its beginning, with everything that is done before more work is requested", async () => {
    const bounds = { least: 4, usual: 4, most: 4, delayMillisMax: 3 }
    const calls = new Measured({ turn: bounds, store: bounds })
    const guard = makeOverloadGuard({ creates: free(), calls }, oneCaller, () => {})
    const ask = () => {
      const request = requestOf("POST", "/v1/chat/completions")
      assert.isTrue(guard(request, new ServerResponse(request)))
    }
    ask()
    await immediate()
    busy(20)
    ask()
    await immediate()
    assert.lengthOf(calls.turns, 2)
    assert.isAtLeast(calls.turns[1]!, 20)
  })

  it("is not waited for once nothing is requested", async () => {
    let turns = 0
    class Counted extends AdmissionLimiter {
      override turn(nowMillis: number, tookMillis: number): void {
        turns += 1
        super.turn(nowMillis, tookMillis)
      }
    }
    const bounds = { least: 4, usual: 4, most: 4, delayMillisMax: 3 }
    const calls = new Counted({ turn: bounds, store: bounds })
    const request = requestOf("POST", "/v1/chat/completions")
    makeOverloadGuard({ creates: free(), calls }, oneCaller, () => {})(
      request,
      new ServerResponse(request)
    )
    for (let n = 0; n < 10; n += 1) await immediate()
    assert.strictEqual(turns, 2)
  })
})

/** ADR 0207 */
describe("refusals that one turn of the loop has no time for", () => {
  it("go to the newest request first, but before it to one that has waited for a second", async () => {
    let now = 0
    const clock = vi.spyOn(performance, "now").mockImplementation(() => now)
    const refused: Array<string | undefined> = []
    // Each takes longer than any of these turns allows
    const guard = makeOverloadGuard({ creates: free(), calls: full() }, oneCaller, ({ req }) => {
      refused.push(req.url)
      now += 200
    })
    const ask = (name: string) => {
      const request = requestOf("POST", `/v1/${name}`)
      assert.isFalse(guard(request, new ServerResponse(request)))
    }
    try {
      for (const name of ["first", "second", "third", "fourth"]) ask(name)
      await immediate()
      assert.deepStrictEqual(refused, ["/v1/fourth"])
      now = 900
      ask("fifth")
      await immediate()
      assert.deepStrictEqual(refused.slice(1), ["/v1/fifth"])
      assert.strictEqual(now, 1100)
      ask("sixth")
      for (let turns = 0; turns < 4; turns += 1) await immediate()
      assert.deepStrictEqual(refused.slice(2), [
        "/v1/first",
        "/v1/second",
        "/v1/third",
        "/v1/sixth"
      ])
    } finally {
      clock.mockRestore()
    }
  })
})
