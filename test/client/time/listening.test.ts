import { assert, describe, it } from "vitest"
import { AuthenticationError, GatewayClient, ServerError } from "../../../src/client/index.ts"
import type { ListenOptions, PublishedEvent } from "../../../src/client/index.ts"
import { jumpingClock } from "../../support/clientClock.ts"

/** docs/client.md: `events.listen`, ADR 0232 */

const event = (n: number) => ({
  id: `evt_${n}`,
  type: "task.created",
  created_at: "2026-01-01T00:00:00.000Z",
  task_id: `task ${n}`,
  body: `{"n":${n}}`
})

const block = (id: string | undefined, n?: number): string =>
  [
    ...(id === undefined ? [] : [`id: ${id}`]),
    ...(n === undefined ? [] : [`data: ${JSON.stringify({ type: "event", data: event(n) })}`])
  ].join("\n") + "\n\n"

/** A stream of these blocks, which then ends, breaks off or stays silent. */
const stream =
  (blocks: ReadonlyArray<string>, end: "ends" | "breaks" | "is silent" = "ends") =>
  () =>
    new Response(
      new ReadableStream({
        start: (controller) => {
          for (const text of blocks) controller.enqueue(new TextEncoder().encode(text))
          if (end === "ends") controller.close()
        },
        pull: (controller) => {
          if (end === "breaks") controller.error(new TypeError("terminated"))
        }
      }),
      { headers: { "content-type": "text/event-stream" } }
    )

const refusal = (status: number) => () =>
  Response.json({ code: 1003, title: "Refused", detail: "no" }, { status })

const lost = (): Response => {
  throw new TypeError("fetch failed")
}

/** What a listener receives, as numbers, until the responses are used up, and what it requested. */
const heard = async (answers: ReadonlyArray<() => Response>, options: ListenOptions = {}) => {
  const { clock, settle } = jumpingClock()
  const start = clock.now()
  const asked: Array<string> = []
  const stop = new AbortController()
  let cuts = 0
  const client = new GatewayClient({
    baseUrl: "http://gateway.test",
    apiKey: "sk-test",
    clock,
    random: () => 1,
    fetch: async (url, init) => {
      const { pathname, searchParams } = new URL(url)
      assert.strictEqual(pathname, "/manage/v1/events")
      const after = new Headers(init.headers).get("last-event-id")
      const since = searchParams.get("since")
      const known = [searchParams.get("events"), after, ...(since === null ? [] : [since])]
      asked.push(`${(clock.now() - start) / 1000} s ${known.map(String).join(" ")}`)
      const answer = answers[asked.length - 1]
      if (answer !== undefined) return answer()
      stop.abort(new Error("used up"))
      throw new TypeError("aborted")
    }
  })
  const got: Array<PublishedEvent> = []
  let error: unknown
  const hear = async () => {
    const listening = client.events.listen({
      types: ["task.created"],
      signal: stop.signal,
      onCut: () => (cuts += 1),
      ...options
    })
    for await (const it of listening) got.push(it)
  }
  try {
    await settle(hear())
  } catch (cause) {
    error = cause
  }
  return { asked, cuts, error, got, ids: got.map(({ id }) => id) }
}

describe("a listener", () => {
  it("continues after the last event it has received, however the stream ends", async () => {
    const { asked, cuts, error, got, ids } = await heard([
      stream([block("0.0"), block("1.0", 1)]),
      stream([block("2.0", 2), block("7.0")], "breaks"),
      lost,
      refusal(503),
      stream([block("8.0", 3)], "is silent")
    ])
    assert.deepStrictEqual(ids, ["evt_1", "evt_2", "evt_3"])
    assert.strictEqual(got[0]!.body, '{"n":1}')
    assert.deepStrictEqual(
      got.map(({ position }) => position),
      ["1.0", "2.0", "8.0"]
    )
    // A silence of 45 seconds counts as a broken connection
    assert.deepStrictEqual(asked, [
      "0 s task.created null",
      "0.5 s task.created 1.0",
      "1 s task.created 7.0",
      "2 s task.created 7.0",
      "4 s task.created 7.0",
      "49.5 s task.created 8.0"
    ])
    assert.strictEqual(cuts, 5)
    assert.strictEqual((error as Error).message, "used up")
  })

  it("yields an event once even if a resumed stream repeats it", async () => {
    const { ids } = await heard([
      stream([block("1.0", 1), block("1.0", 2)]),
      stream([block("1.0", 2), block("2.0", 3)])
    ])
    assert.deepStrictEqual(ids, ["evt_1", "evt_2", "evt_3"])
  })

  it("starts after a position that the program has stored", async () => {
    const { asked } = await heard([stream([])], { after: "17.4" })
    assert.deepStrictEqual(asked[0], "0 s task.created 17.4")
  })

  it("resets its back-off with each event", async () => {
    const { asked, cuts } = await heard([
      lost,
      lost,
      lost,
      stream([block(undefined, 1)]),
      stream([block(undefined, 2)]),
      lost
    ])
    assert.strictEqual(cuts, 6)
    assert.deepStrictEqual(
      asked.map((it) => it.split(" ")[0]),
      ["0", "0.5", "1.5", "3.5", "4", "4.5", "5.5"]
    )
  })

  it("fails at once with a wrong key or at another service", async () => {
    const refused = await heard([refusal(401)])
    assert.instanceOf(refused.error, AuthenticationError)
    assert.deepStrictEqual([refused.asked.length, refused.cuts], [1, 0])
    const foreign = await heard([stream(['data: {"type":"task"}\n\n'])])
    assert.instanceOf(foreign.error, ServerError)
    assert.lengthOf(foreign.asked, 1)
    // After this id the stream would continue without it
    const broken = await heard([stream(['id: 1.0\ndata: {"type":"ev\n\n']), stream([])])
    assert.instanceOf(broken.error, ServerError)
    assert.lengthOf(broken.asked, 1)
    const page = await heard([() => new Response("<p>Hello</p>"), stream([])])
    assert.instanceOf(page.error, ServerError)
    assert.lengthOf(page.asked, 1)
  })

  it("fails at once with a position that a header cannot contain", async () => {
    for (const after of ["17.4\n\u2028", "\u{1F4A1}"]) {
      const { asked, error } = await heard([stream([])], { after })
      assert.instanceOf(error, TypeError)
      assert.lengthOf(asked, 0)
    }
  })

  it("matches field names exactly", async () => {
    const { asked, ids } = await heard([stream([`identity: 9.9\ndata-of: x\n${block("1.0", 1)}`])])
    assert.deepStrictEqual(ids, ["evt_1"])
    assert.strictEqual(asked[1], "0.5 s task.created 1.0")
  })
})
