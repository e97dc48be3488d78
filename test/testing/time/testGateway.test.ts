import { assert, describe, it, layer, vi } from "@effect/vitest"
import { PGlite } from "@electric-sql/pglite"
import { Effect } from "effect"
import { layerTest, MockVendor, startTestGateway, TestGateway } from "../../../src/testing/index.ts"
import type { Failure, StartedTestGateway } from "../../../src/testing/index.ts"
import { verifyWebhook } from "../../../src/webhooks/verifyWebhook.ts"

const pathOf = (model: string) => `/vendors/alibaba/v1/${model}/generation`
const image = pathOf("text-to-image-max")

const create = ({ key }: { readonly key: string }) => ({
  method: "POST",
  headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
  body: JSON.stringify({ prompt: "A lighthouse" })
})

interface Task {
  readonly task_info: {
    readonly id: string
    readonly status: string
    readonly error?: { readonly code: number }
  }
  readonly images?: ReadonlyArray<string>
}

const taskOf = (response: Response) => Effect.promise(() => response.json() as Promise<Task>)

const order = async (gateway: StartedTestGateway, path = image): Promise<string> => {
  const response = await gateway.fetch(path, create(gateway))
  assert.strictEqual(response.status, 202)
  return ((await response.json()) as Task).task_info.id
}

const read = async (gateway: StartedTestGateway, id: string, path = image) => {
  const response = await gateway.fetch(`${path}/${id}`, {
    headers: { authorization: `Bearer ${gateway.key}` }
  })
  return (await response.json()) as Task
}

describe("a started gateway", () => {
  it("reuses the emptied store of the gateway before it with few statements", async () => {
    await (await startTestGateway()).close()
    const opened = vi.spyOn(PGlite, "create")
    const sent = vi.spyOn(PGlite.prototype, "execProtocolRawStream")
    // If statements are slow, the store lets scans of the new gateway run between those of its start
    vi.spyOn(performance, "now").mockReturnValue(0)
    for (let n = 0; n < 3; n += 1) {
      sent.mockClear()
      const gateway = await startTestGateway()
      assert.isAtMost(sent.mock.calls.length, 10)
      assert.notInclude(await gateway.snapshot(), "task 1")
      await order(gateway)
      await gateway.close()
    }
    assert.strictEqual(opened.mock.calls.length, 0)
    vi.restoreAllMocks()
  })

  it("advances time, scripts vendors by model, and shows ledger and timelines as text", async () => {
    await using gateway = await startTestGateway({
      vendor: {
        "text-to-image-max": [
          MockVendor.refused("RATE_LIMITED", "slow down"),
          MockVendor.result("2 minutes")
        ],
        default: [MockVendor.jobFails("FAILED", "it broke", "5 seconds")]
      }
    })
    await gateway.webhooks.listen({ events: ["task.succeeded", "task.failed"] })
    const first = await order(gateway)
    const video = "/vendors/service/v1/text-to-video-spark/generation"
    const second = await order(gateway, video)
    await gateway.advance("10 seconds")
    assert.strictEqual((await read(gateway, first)).task_info.status, "processing")
    assert.strictEqual((await read(gateway, second, video)).task_info.status, "failed")
    await gateway.runUntilQuiet()
    assert.strictEqual((await read(gateway, first)).images?.length, 1)
    assert.deepEqual(
      (await gateway.submits()).map(({ model }) => model),
      ["text-to-image-max", "text-to-video-spark", "text-to-image-max"]
    )
    assert.strictEqual(await gateway.snapshot(), expectedSnapshot)
  })

  it("runs batches of language models with the sandbox's responses", async () => {
    await using gateway = await startTestGateway({ vendor: [MockVendor.result("1 minute")] })
    const send = async (path: string, init: RequestInit = {}) => {
      const headers = { authorization: `Bearer ${gateway.key}`, ...init.headers }
      return (await gateway.fetch(path, { ...init, headers })).text()
    }
    const post = async (path: string, body: object) => {
      const headers = { "content-type": "application/json" }
      const init = { method: "POST", headers, body: JSON.stringify(body) }
      return JSON.parse(await send(path, init)) as { id: string }
    }
    const params = { max_tokens: 50, messages: [{ role: "user", content: "Hi" }] }
    const messages = await post("/v1/messages/batches", {
      requests: ["a", "b"].map((custom_id) => ({
        custom_id,
        params: { model: "claude-haiku-4-5", ...params }
      }))
    })
    const form = new FormData()
    const url = "/v1/chat/completions"
    const line = { custom_id: "c", method: "POST", url, body: { model: "gpt-4o-mini", ...params } }
    form.set("purpose", "batch")
    form.set("file", new Blob([JSON.stringify(line)]), "requests.jsonl")
    const { id: input_file_id } = JSON.parse(
      await send("/v1/files", { method: "POST", body: form })
    ) as { id: string }
    const order = { input_file_id, endpoint: url, completion_window: "24h" }
    const chats = await post("/v1/batches", order)
    await gateway.runUntilQuiet()
    const results = await send(`/v1/messages/batches/${messages.id}/results`)
    assert.deepStrictEqual(
      results
        .trim()
        .split("\n")
        .map((it) => JSON.parse(it).result.type),
      ["succeeded", "succeeded"]
    )
    const done = JSON.parse(await send(`/v1/batches/${chats.id}`))
    assert.deepStrictEqual(done.request_counts, { total: 1, completed: 1, failed: 0 })
    assert.match(await send(`/v1/files/${done.output_file_id}/content`), /"custom_id":"c"/u)
  })

  it("waits for webhooks, passes them to a receiver, and says which ones arrived instead", async () => {
    const seen: Array<string> = []
    let secret = ""
    await using gateway = await startTestGateway({
      receiver: async (request) => {
        const body = await request.text()
        const verified = await verifyWebhook({ headers: request.headers, body, secret })
        seen.push(`${verified.valid} ${JSON.parse(body).type}`)
        if (seen.length === 1) throw new Error("a receiver that breaks")
        return new Response("ok")
      }
    })
    const missing = await gateway.webhooks
      .received("task.failed", { within: "1 minute" })
      .catch(String)
    assert.include(missing, "0 of 1 task.failed webhooks within 1m")
    assert.include(missing, "nothing; webhooks.listen() creates an endpoint")
    ;({ secret } = await gateway.webhooks.listen({ events: ["task.succeeded"] }))
    const taskId = await order(gateway)
    const again = await gateway.webhooks.received("task.succeeded", { taskId, count: 2 })
    assert.deepEqual(seen, ["true task.succeeded", "true task.succeeded"])
    const [one, two] = await gateway.webhooks.all()
    assert.strictEqual(one?.deliveryId, two?.deliveryId)
    assert.strictEqual(again.afterMillis - (one?.afterMillis ?? 0), 15_000)
  })
})

const expectedSnapshot = `\
task 1 alibaba/text-to-image-max: completed, held 0.00, captured 7.50
  +0.000 s pending
  +0.000 s processing
  +0.000 s attempt 1 refused
  +1.000 s attempt 2 submitted
  +121.000 s completed
  +121.000 s task.succeeded to endpoint 1, attempt 1: 200
task 2 service/text-to-video-spark: failed, held 0.00, captured 0.00
  error 3005: it broke
  +0.000 s pending
  +0.000 s processing
  +0.000 s attempt 1 submitted
  +5.000 s failed
  +5.000 s task.failed to endpoint 1, attempt 1: 200
ledger
  +0.000 s top_up 1000.00: settled 1000.00, held 0.00
  +0.000 s hold 7.50 task 1: settled 1000.00, held 7.50
  +0.000 s hold 50.00 task 2: settled 1000.00, held 57.50
  +5.000 s release 50.00 task 2: settled 1000.00, held 7.50
  +121.000 s capture 7.50 task 1: settled 992.50, held 0.00`

const crashes: Record<Failure, { status: string; code?: number; submits: number; sent: number }> = {
  "crash before submit": { status: "failed", code: 3004, submits: 0, sent: 1 },
  "crash after submit": { status: "failed", code: 3004, submits: 1, sent: 1 },
  "vendor accepts then connection lost": { status: "failed", code: 3004, submits: 1, sent: 1 },
  "crash before finish": { status: "completed", submits: 1, sent: 1 },
  "crash after finish": { status: "completed", submits: 1, sent: 1 },
  "crash before webhook": { status: "completed", submits: 1, sent: 1 },
  "crash after webhook": { status: "completed", submits: 1, sent: 2 }
}

describe("a requested failure", () => {
  for (const [failure, { code, sent, status, submits }] of Object.entries(crashes)) {
    it(`happens once: ${failure}`, async () => {
      await using gateway = await startTestGateway()
      await gateway.webhooks.listen({ events: ["task.succeeded", "task.failed"] })
      await gateway.failNext(failure as Failure)
      const id = await order(gateway)
      await gateway.runUntilQuiet({ atMost: "1 hour" })
      const { task_info } = await read(gateway, id)
      assert.strictEqual(task_info.status, status, await gateway.snapshot())
      assert.strictEqual(task_info.error?.code, code)
      assert.strictEqual((await gateway.submits()).length, submits)
      const received = await gateway.webhooks.all()
      assert.strictEqual(received.length, sent)
      assert.strictEqual(new Set(received.map((it) => it.deliveryId)).size, 1)
      const captured = (await gateway.snapshot()).match(/ capture /gu)?.length ?? 0
      assert.strictEqual(captured, status === "completed" ? 1 : 0)
    })
  }

  it("may be an unavailable store, unavailable receivers or a restart", async () => {
    await using gateway = await startTestGateway()
    await gateway.webhooks.listen({ events: ["task.succeeded"] })
    await gateway.setAway("store away", "5 seconds")
    assert.strictEqual((await gateway.fetch(image, create(gateway))).status, 503)
    await gateway.advance("10 seconds")
    const id = await order(gateway)
    await gateway.advance("1 second")
    await gateway.setAway("receivers away", "1 minute")
    await gateway.restart()
    await gateway.runUntilQuiet()
    assert.strictEqual((await read(gateway, id)).task_info.status, "completed")
    const snapshot = await gateway.snapshot()
    for (const attempt of [
      "+12.000 s task.succeeded to endpoint 1, attempt 1: connect",
      "+27.000 s task.succeeded to endpoint 1, attempt 2: connect",
      "+87.000 s task.succeeded to endpoint 1, attempt 3: 200"
    ]) {
      assert.include(snapshot, attempt)
    }
  })

  it("is named if it is not reached", async () => {
    const gateway = await startTestGateway({ vendor: [MockVendor.result("1 hour")] })
    await order(gateway)
    await gateway.failNext("crash before finish")
    const left = await gateway.runUntilQuiet({ atMost: "1 minute" }).catch(String)
    assert.include(left, "Tasks or deliveries are unfinished")
    assert.include(left, "Not reached: crash before finish")
    assert.include(left, "task 1 alibaba/text-to-image-max: processing")
    // A test that ends without its failure has tested something else
    const ended = await gateway.close().then(() => "nothing", String)
    assert.include(ended, "Failures requested but not reached: crash before finish")
  })

  it("lets the next process start once the store is available again", async () => {
    await using gateway = await startTestGateway()
    await order(gateway)
    await gateway.setAway("store away", "1 minute")
    await gateway.restart()
    assert.strictEqual(gateway.now(), 60_000)
    await gateway.runUntilQuiet()
    assert.include(await gateway.snapshot(), "task 1 alibaba/text-to-image-max: completed")
  })
})

layer(layerTest({ vendor: [MockVendor.result("2 minutes")] }))("a program in Effect", (it) => {
  it.effect("runs while time passes", () =>
    Effect.gen(function* () {
      const gateway = yield* TestGateway
      const { task_info } = yield* gateway
        .fetch(image, create(gateway))
        .pipe(Effect.flatMap(taskOf))
      const headers = { authorization: `Bearer ${gateway.key}` }
      let polls = 0
      const done = Effect.repeat(
        Effect.delay(gateway.fetch(`${image}/${task_info.id}`, { headers }), "10 seconds").pipe(
          Effect.flatMap(taskOf),
          Effect.tap(() => Effect.sync(() => (polls += 1)))
        ),
        { until: (it) => it.task_info.status === "completed" }
      )
      yield* gateway.whileTimePasses(done)
      assert.strictEqual(polls, 13)
      assert.strictEqual(yield* gateway.now, 130_000)
    })
  )
})
