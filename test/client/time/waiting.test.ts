import { assert, describe, it } from "vitest"
import {
  ConnectionError,
  GatewayClient,
  NotFoundError,
  TaskFailedError,
  TimeoutError
} from "../../../src/client/index.ts"
import type { Task } from "../../../src/client/index.ts"
import { jumpingClock } from "../../support/clientClock.ts"

const ref = {
  id: "019a0c5e-7f3a-7a00-9e2b-4f6a8c0d1e2f",
  vendor: "alibaba",
  model: "text-to-image-max",
  action: "generation"
} as const

const path = `/vendors/alibaba/v1/text-to-image-max/generation/${ref.id}`

const resultOf = (status: Task["status"]) => ({
  task_info: {
    id: ref.id,
    status,
    created_at: "2026-01-01T00:00:00.000Z",
    updated_at: "2026-01-01T00:00:00.000Z",
    ...(status === "failed" ? { error: { code: 3001, title: "Content Error", detail: "no" } } : {})
  },
  ...(status === "completed" ? { images: ["http://gateway.test/artifacts/art_1"] } : {})
})

/** A stream with these events that then ends, breaks off or stays silent. */
const stream =
  (statuses: ReadonlyArray<Task["status"]>, end: "ends" | "breaks" | "is silent" = "ends") =>
  () =>
    new Response(
      new ReadableStream({
        start: (controller) => {
          for (const status of statuses) {
            const text = `data: ${JSON.stringify(resultOf(status))}\n\n`
            controller.enqueue(new TextEncoder().encode(text))
          }
          if (end === "ends") controller.close()
        },
        pull: (controller) => {
          if (end === "breaks") controller.error(new TypeError("terminated"))
        }
      }),
      { headers: { "content-type": "text/event-stream; charset=utf-8" } }
    )

const poll = (status: Task["status"], retryAfter?: string) => (): Response =>
  Response.json(resultOf(status), {
    headers: {
      "x-service-cost": "7.50",
      ...(retryAfter === undefined ? {} : { "retry-after": retryAfter })
    }
  })

const lost = (): Promise<Response> => Promise.reject(new TypeError("fetch failed"))
const silent = (): Promise<Response> => new Promise(() => {})

type Answer = () => Response | Promise<Response>

/** A client whose streams and polls get these responses, with the last ones repeated. */
const scripted = (answers: {
  readonly streams?: ReadonlyArray<Answer>
  readonly polls?: ReadonlyArray<Answer>
}) => {
  const { clock, settle, sleeping } = jumpingClock()
  const start = clock.now()
  const asked: Array<string> = []
  const next = (list: ReadonlyArray<Answer> = [], kind: string) => {
    const before = asked.filter((it) => it.startsWith(kind)).length
    asked.push(`${kind} ${(clock.now() - start) / 1000}`)
    const answer = list[before] ?? list.at(-1)
    if (answer === undefined) throw new Error(`No ${kind} was expected`)
    return answer()
  }
  const client = new GatewayClient({
    baseUrl: "http://gateway.test",
    apiKey: "sk-test",
    clock,
    random: () => 0,
    fetch: async (url, { headers }) => {
      assert.strictEqual(url, `http://gateway.test${path}`)
      const isStream = new Headers(headers).get("accept") === "text/event-stream"
      return isStream ? next(answers.streams, "stream") : next(answers.polls, "poll")
    }
  })
  const seen: Array<string> = []
  const options = { onProgress: ({ status }: Task) => void seen.push(status) }
  return { client, settle, asked, seen, options, sleeping }
}

const failureOf = async (settled: Promise<unknown>): Promise<unknown> =>
  settled.then(
    () => assert.fail("It should fail"),
    (error) => error
  )

describe("waiting for a task", () => {
  it("follows its stream", async () => {
    const { asked, client, options, seen, settle, sleeping } = scripted({
      streams: [stream(["pending", "processing", "completed"], "is silent")]
    })
    const task = await settle(client.tasks.wait(ref, options))
    assert.deepStrictEqual(task.images, ["http://gateway.test/artifacts/art_1"])
    assert.deepStrictEqual(seen, ["pending", "processing", "completed"])
    assert.deepStrictEqual(asked, ["stream 0"])
    assert.strictEqual(sleeping(), 0, "no timer is left")
  })

  it("polls at the pace of Retry-After if there is no stream, and does not request one again", async () => {
    const noStream = [
      stream([]),
      lost,
      // Like a proxy that buffers everything
      stream([], "is silent"),
      silent,
      () => Response.json(resultOf("pending")),
      () => new Response("no", { status: 406 })
    ]
    for (const answer of noStream) {
      const { asked, client, options, seen, settle } = scripted({
        streams: [answer],
        polls: [
          poll("pending", "5"),
          poll("processing", "3"),
          poll("processing"),
          poll("completed")
        ]
      })
      await settle(client.tasks.wait(ref, options))
      assert.deepStrictEqual(seen, ["pending", "processing", "completed"])
      const kinds = asked.map((it) => it.split(" ")[0])
      assert.deepStrictEqual(kinds, ["stream", "poll", "poll", "poll", "poll"])
      const [, first = 0, ...others] = asked.map((it) => Number(it.split(" ")[1]))
      assert.deepStrictEqual(
        others.map((it) => it - first),
        [5, 8, 10]
      )
    }
  })

  it("polls from the start if `poll` is set", async () => {
    const { asked, client, settle } = scripted({ polls: [poll("pending"), poll("completed")] })
    await settle(client.tasks.wait(ref, { poll: true }))
    assert.deepStrictEqual(asked, ["poll 0", "poll 2"])
  })

  it("reopens a stream that has ended, broken or gone silent, and reports each move once", async () => {
    for (const end of ["ends", "breaks", "is silent"] as const) {
      const { asked, client, options, seen, settle } = scripted({
        streams: [stream(["pending"], end), stream(["pending", "processing", "completed"])],
        polls: [poll("pending", "2")]
      })
      await settle(client.tasks.wait(ref, options))
      assert.deepStrictEqual(seen, ["pending", "processing", "completed"])
      const later = end === "is silent" ? 45 : 0
      assert.deepStrictEqual(asked, ["stream 0", `poll ${later}`, `stream ${later + 2}`])
    }
  })

  it("rejects with the reason and the task if the task fails", async () => {
    for (const answers of [
      { streams: [stream(["failed"])] },
      { streams: [lost], polls: [poll("failed")] }
    ]) {
      const { client, options, seen, settle } = scripted(answers)
      const error = (await failureOf(settle(client.tasks.wait(ref, options)))) as TaskFailedError
      assert.instanceOf(error, TaskFailedError)
      assert.strictEqual(error.code, 3001)
      assert.strictEqual(error.task.id, ref.id)
      assert.include(error.message, "Content Error: no")
      assert.deepStrictEqual(seen, ["failed"])
    }
  })

  it("rejects with NotFoundError if the task does not exist", async () => {
    const absent = () => Response.json({ code: 2005, title: "Not found" }, { status: 404 })
    const { asked, client, settle } = scripted({ streams: [absent], polls: [absent] })
    assert.instanceOf(await failureOf(settle(client.tasks.wait(ref))), NotFoundError)
    assert.lengthOf(asked, 2)
  })

  it("ends at its deadline with streams and polls, and names the task that continues", async () => {
    for (const answers of [
      { streams: [stream(["pending"], "is silent")] },
      { streams: [lost], polls: [poll("pending")] },
      { streams: [silent] }
    ]) {
      const { client, settle, sleeping } = scripted(answers)
      const error = (await failureOf(
        settle(client.tasks.wait(ref, { deadline: 20_000 }))
      )) as TimeoutError
      assert.instanceOf(error, TimeoutError)
      assert.deepStrictEqual(error.task, ref)
      assert.strictEqual(sleeping(), 0)
    }
  })

  it("ends at its deadline with the key of a run whose create has no response", async () => {
    const { clock, settle, sleeping } = jumpingClock()
    const start = clock.now()
    const client = new GatewayClient({
      baseUrl: "http://gateway.test",
      apiKey: "sk-test",
      clock,
      fetch: silent
    })
    for (const idempotencyKey of ["order-17", undefined]) {
      const error = (await failureOf(
        settle(
          client.tasks.run(
            "text-to-image-max",
            { prompt: "A lighthouse" },
            { deadline: 20_000, idempotencyKey }
          )
        )
      )) as TimeoutError
      assert.instanceOf(error, TimeoutError)
      assert.isUndefined(error.task)
      assert.match(
        error.idempotencyKey ?? "",
        idempotencyKey === undefined ? /^.{36}$/u : /^order-17$/u
      )
      assert.strictEqual(sleeping(), 0)
    }
    assert.strictEqual(clock.now() - start, 40_000)
  })

  it("ends with its signal at any step", async () => {
    for (const answers of [
      { streams: [stream(["pending"], "is silent")] },
      { streams: [silent] },
      { streams: [lost], polls: [poll("pending", "60")] },
      { streams: [lost], polls: [silent] }
    ]) {
      const { client, settle, sleeping } = scripted(answers)
      const controller = new AbortController()
      const failure = failureOf(client.tasks.wait(ref, { signal: controller.signal }))
      for (let turns = 0; turns < 10; turns += 1) await new Promise(setImmediate)
      controller.abort("enough")
      assert.strictEqual(await settle(failure), "enough")
      assert.strictEqual(sleeping(), 0)
    }
  })

  it("fails if the gateway stays unavailable", async () => {
    const { client, settle } = scripted({ streams: [stream(["pending"])], polls: [lost] })
    assert.instanceOf(await failureOf(settle(client.tasks.wait(ref))), ConnectionError)
  })

  it("rejects with what its callback throws", async () => {
    const { client, settle } = scripted({ streams: [stream(["pending"], "is silent")] })
    const broken = new Error("mine")
    const onProgress = () => {
      throw broken
    }
    assert.strictEqual(await failureOf(settle(client.tasks.wait(ref, { onProgress }))), broken)
  })

  it("closes its stream when the caller stops watching", async () => {
    let isClosed = false
    const open: Answer = () =>
      new Response(
        new ReadableStream({
          start: (controller) => {
            const text = `data: ${JSON.stringify(resultOf("pending"))}\n\n`
            controller.enqueue(new TextEncoder().encode(text))
          },
          cancel: () => {
            isClosed = true
          }
        }),
        { headers: { "content-type": "text/event-stream" } }
      )
    const { client, settle, sleeping } = scripted({ streams: [open] })
    const first = async () => {
      for await (const { status } of client.tasks.watch(ref)) return status
      return undefined
    }
    assert.strictEqual(await settle(first()), "pending")
    assert.isTrue(isClosed)
    assert.strictEqual(sleeping(), 0)
  })
})
