import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { createHmac } from "node:crypto"
import type { HttpResult } from "../support/gateway.ts"
import { GatewayProcess } from "../support/gatewayProcess.ts"
import { until } from "../support/until.ts"
import { startReceiver } from "../support/webhookReceiver.ts"
import type { Received } from "../support/webhookReceiver.ts"

const image = "/vendors/alibaba/v1/text-to-image-max/generation"
const hooks = "/manage/v1/webhook-endpoints"
const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/u
const iso = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/u
const allEvents = ["task.created", "task.succeeded", "task.failed", "balance.low"]

let gateway: GatewayProcess
let receiver: Awaited<ReturnType<typeof startReceiver>>
let endpoint: HttpResult
let editPath = ""
let spark = ""

beforeAll(async () => {
  receiver = await startReceiver()
  gateway = await GatewayProcess.start({ env: receiver.env })
  endpoint = await gateway.call("POST", hooks, { url: receiver.url, events: allEvents })
  assert.strictEqual(endpoint.status, 201, endpoint.text)
  const document = (await gateway.call("GET", "/openapi.json")).json
  const pathTo = (end: string) => Object.keys(document.paths).find((it) => it.endsWith(end))!
  editPath = pathTo("/image-edit-pro/edit")
  spark = pathTo("/text-to-video-spark/generation")
})
afterAll(async () => {
  await gateway.close()
  await receiver[Symbol.asyncDispose]()
})

const created = async (path: string, body: unknown): Promise<HttpResult> => {
  const answer = await gateway.call("POST", path, body)
  assert.strictEqual(answer.status, 202, answer.text)
  return answer
}

const ended = (path: string, id: string) =>
  until<HttpResult>(async () => {
    const answer = await gateway.call("GET", `${path}/${id}`)
    return /completed|failed/u.test(answer.json.task_info.status) ? answer : undefined
  })

const run = async (path: string, body: unknown) =>
  ended(path, (await created(path, body)).json.task_info.id)

const received = (type: string, id: string) =>
  until<Received>(
    async () =>
      receiver.received.find(
        (it) => it.event.type === type && it.event.data.payload.task_info?.id === id
      ),
    { what: `${type} of ${id}` }
  )

const dataUri = () => {
  // A picture made by the service
  return gateway
    .call("POST", image, { prompt: "an input", size: "1328*1328" })
    .then((it) => ended(image, it.json.task_info.id))
    .then((it) => fetch(it.json.images[0]))
    .then(async (it) => Buffer.from(await it.arrayBuffer()).toString("base64"))
    .then((base64) => `data:image/png;base64,${base64}`)
}

/** docs/reference/requirements.md#service */
describe("Service", () => {
  it("Every vendor is exposed under the path prefix /vendors/{vendor}", async () => {
    assert.match((await gateway.call("GET", "/openapi.json")).text, /"\/vendors\/alibaba\/v1\//u)
    assert.strictEqual(
      (await gateway.call("POST", "/vendors/none/v1/x/generation", {})).status,
      404
    )
  })

  it("a POST creates a task and returns its id at once; the client then polls a GET endpoint with the task id", async () => {
    const { task_info: task } = (await created(image, { prompt: "x" })).json
    assert.match(task.id, uuid)
    assert.strictEqual((await ended(image, task.id)).json.task_info.status, "completed")
  })

  it("Every response carries a Traceparent header identifying the request", async () => {
    for (const path of [image, `${image}/nonsense`, "/nope", "/healthz"]) {
      const { headers } = await gateway.call("GET", path)
      assert.match(headers.get("traceparent") ?? "", /^00-[0-9a-f]{32}-[0-9a-f]{16}-01$/u)
    }
  })

  it("text-to-image-max costs 0.075 US dollars per image", async () => {
    const quote = await gateway.call("POST", `${image}?dry_run=true`, { prompt: "x" })
    assert.deepStrictEqual(quote.json, { quote: { amount: "7.50", currency: "credits" } })
    const done = await run(image, { prompt: "x" })
    assert.strictEqual(done.headers.get("x-service-cost"), "7.50")
  })
})

/** docs/reference/requirements.md#tasks */
describe("Resources and their fields", () => {
  it("the create responses of /generation list only id, created_at, updated_at", async () => {
    const { task_info: task } = (await created(image, { prompt: "x" })).json
    assert.hasAllKeys(task, ["id", "created_at", "updated_at"])
    assert.match(task.created_at, iso)
    assert.match(task.updated_at, iso)
  })

  it("status is present in the image-edit-pro create response (value pending)", async () => {
    const answer = await created(editPath, { prompt: "x", images: [await dataUri()] })
    assert.hasAllKeys(answer.json.task_info, ["id", "status", "created_at", "updated_at"])
    assert.strictEqual(answer.json.task_info.status, "pending")
  })

  it("images: URLs of generated images; videos: URLs of generated videos", async () => {
    const picture = await run(image, { prompt: "x" })
    assert.hasAllKeys(picture.json, ["task_info", "images"])
    const opened = await fetch(picture.json.images[0])
    assert.strictEqual(opened.headers.get("content-type"), "image/png")
    await opened.arrayBuffer()
    const video = await run(spark, { prompt: "x", duration: 5 })
    assert.hasAllKeys(video.json, ["task_info", "videos"])
    const played = await fetch(video.json.videos[0])
    assert.strictEqual(played.headers.get("content-type"), "video/mp4")
    await played.arrayBuffer()
  })

  it("The result array is absent while the task is pending, processing or failed", async () => {
    const slow = (await created(image, { prompt: "x [[sim:slow=1h]]" })).json.task_info.id
    const running = await gateway.call("GET", `${image}/${slow}`)
    assert.hasAllKeys(running.json, ["task_info"])
    await gateway.call("DELETE", `${image}/${slow}`)
    assert.hasAllKeys((await run(image, { prompt: "x [[sim:fail]]" })).json, ["task_info"])
  })

  it("error is present only when status is failed: code integer, title, detail", async () => {
    const failed = await run(image, { prompt: "x [[sim:refuse]]" })
    const { error, status } = failed.json.task_info
    assert.strictEqual(status, "failed")
    assert.hasAllKeys(error, ["code", "title", "detail"])
    assert.strictEqual(error.code, 3001)
    assert.notProperty((await run(image, { prompt: "x" })).json.task_info, "error")
  })

  it("the signing secret is shown in full once, on create and on rotate; afterwards only whsec_...<last 4 characters>", async () => {
    const made = await gateway.call("POST", hooks, {
      url: "https://example.com/secret",
      events: ["task.created"],
      enabled: false
    })
    const { id, secret } = made.json
    assert.match(secret, /^whsec_/u)
    const shown = await gateway.call("GET", `${hooks}/${id}`)
    assert.notProperty(shown.json, "secret")
    assert.strictEqual(shown.json.secret_preview, `whsec_...${secret.slice(-4)}`)
    const rotated = await gateway.call("POST", `${hooks}/${id}/rotate`)
    assert.notStrictEqual(rotated.json.secret, secret)
    assert.strictEqual((await gateway.call("DELETE", `${hooks}/${id}`)).status, 204)
  })

  for (const [sentence, change] of [
    ["HTTPS only: http:// is rejected on create and update", { url: "http://example.com" }],
    ["at most 2048 characters", { url: `https://example.com/${"x".repeat(2048)}` }],
    ["events: one or more of the event types", { events: [] }],
    ["events of the Events part alone", { events: ["task.processing"] }],
    ["description: at most 200 characters", { description: "x".repeat(201) }]
  ] as const) {
    it(`Webhook endpoint, ${sentence}`, async () => {
      const good = { url: "https://example.com", events: ["task.created"] }
      const refused = await gateway.call("POST", hooks, { ...good, ...change })
      assert.strictEqual(refused.status, 400, refused.text)
      const updated = await gateway.call("PATCH", `${hooks}/${endpoint.json.id}`, change)
      assert.strictEqual(updated.status, 400, updated.text)
    })
  }
})

/** docs/reference/requirements.md#authentication */
describe("Authentication", () => {
  it("Every endpoint requires an API key, sent as Authorization: Bearer <API_KEY>", async () => {
    for (const [method, path] of [
      ["POST", image],
      ["GET", `${image}/01a1fde7-442b-7260-8c58-eefab31afd40`],
      ["GET", "/manage/v1/wallet"]
    ] as const) {
      const answer = await fetch(`${gateway.url}${path}`, { method })
      assert.strictEqual(answer.status, 401)
      assert.strictEqual(answer.headers.get("www-authenticate"), "Bearer")
      await answer.arrayBuffer()
    }
  })

  it("One key serves all vendors", async () => {
    const messages = [{ role: "user", content: "Hello" }]
    const contents = [{ parts: [{ text: "Hello" }] }]
    for (const [path, body] of [
      [image, { prompt: "x" }],
      [spark, { prompt: "x" }],
      [editPath, { prompt: "x", images: [await dataUri()] }],
      ["/v1/chat/completions", { model: "gpt-4o-mini", messages }],
      ["/vendors/anthropic/v1/messages", { model: "claude-haiku-4-5", max_tokens: 9, messages }],
      ["/vendors/google/v1beta/models/gemini-2.5-flash:generateContent", { contents }]
    ] as const) {
      const answer = await gateway.call("POST", path, body)
      assert.include([200, 202], answer.status, `${path} ${answer.text}`)
    }
  })

  it("a task of another user is not found", async () => {
    const id = (await created(image, { prompt: "x" })).json.task_info.id
    const other = await gateway.makeUser()
    const answer = await fetch(`${gateway.url}${image}/${id}`, {
      headers: { authorization: `Bearer ${other.key}` }
    })
    assert.strictEqual(answer.status, 404)
    await answer.arrayBuffer()
  })
})

/** docs/reference/requirements.md#events */
describe("Events", () => {
  it("Each create-task operation emits task.created; the outcome emits task.succeeded or task.failed; processing emits no event", async () => {
    const good = (await run(image, { prompt: "x" })).json.task_info.id
    const bad = (await run(image, { prompt: "x [[sim:fail]]" })).json.task_info.id
    await received("task.succeeded", good)
    await received("task.failed", bad)
    await received("task.created", good)
    await received("task.created", bad)
    const types = (id: string) =>
      receiver.received
        .filter((it) => it.event.data.payload.task_info?.id === id)
        .map((it) => it.event.type)
        .sort()
    assert.deepStrictEqual(types(good), ["task.created", "task.succeeded"])
    assert.deepStrictEqual(types(bad), ["task.created", "task.failed"])
  })

  it("Envelope: id (prefix evt_), type, created_at (ISO 8601), data", async () => {
    const id = (await run(image, { prompt: "x" })).json.task_info.id
    const { event } = await received("task.succeeded", id)
    assert.hasAllKeys(event, ["id", "type", "created_at", "data"])
    assert.match(event.id, /^evt_/u)
    assert.match(event.created_at, iso)
  })

  it("Task events: data = { vendor, model_name, payload }; payload equals the body the GET task endpoint returns at that point", async () => {
    for (const prompt of ["x", "x [[sim:refuse]]"]) {
      const done = await run(image, { prompt })
      const { id, status } = done.json.task_info
      const type = status === "completed" ? "task.succeeded" : "task.failed"
      const { event } = await received(type, id)
      assert.hasAllKeys(event.data, ["vendor", "model_name", "payload"])
      assert.strictEqual(event.data.vendor, "alibaba")
      assert.strictEqual(event.data.model_name, "text-to-image-max")
      assert.deepStrictEqual(event.data.payload, done.json)
      const first = (await received("task.created", id)).event.data.payload
      assert.hasAllKeys(first, ["task_info"])
      assert.strictEqual(first.task_info.status, "pending")
    }
  })

  it("balance.low: data = { user_id, payload: { available_balance, trigger_threshold, currency } }, amounts with two decimals", async () => {
    const { event } = await until<Received>(async () =>
      receiver.received.find((it) => it.event.type === "balance.low")
    )
    assert.match(event.data.user_id, uuid)
    assert.hasAllKeys(event.data.payload, ["available_balance", "trigger_threshold", "currency"])
    assert.match(event.data.payload.available_balance, /^\d+\.\d\d$/u)
    assert.strictEqual(event.data.payload.trigger_threshold, "1000.00")
    assert.strictEqual(event.data.payload.currency, "credits")
    assert.strictEqual(receiver.received.filter((it) => it.event.type === "balance.low").length, 1)
  })

  it("Test event: a synthetic task.succeeded whose event id has the prefix evt_test_", async () => {
    const sent = await gateway.call("POST", `${hooks}/${endpoint.json.id}/test`)
    assert.strictEqual(sent.status, 202, sent.text)
    const one = await until(async () =>
      receiver.received.find((it) => it.deliveryId === sent.json.delivery_id)
    )
    assert.match(sent.json.event_id, /^evt_test_/u)
    assert.strictEqual(one.event.id, sent.json.event_id)
    assert.strictEqual(one.event.type, "task.succeeded")
  })
})

/** docs/reference/requirements.md#delivery-request */
describe("Delivery request and Signature", () => {
  it("POST with Content-Type, User-Agent, X-Service-Webhook-Id, -Timestamp and -Signature", async () => {
    const id = (await run(image, { prompt: "x" })).json.task_info.id
    const { headers, method } = await received("task.succeeded", id)
    assert.strictEqual(method, "POST")
    assert.strictEqual(headers["content-type"], "application/json")
    assert.strictEqual(headers["user-agent"], "Service-Webhook/1.0")
    assert.match(String(headers["x-service-webhook-id"]), /^whd_/u)
    const skew = Date.now() / 1000 - Number(headers["x-service-webhook-timestamp"])
    assert.isBelow(Math.abs(skew), 300)
    assert.match(String(headers["x-service-webhook-signature"]), /^v1=[0-9a-f]{64}$/u)
  })

  it("signature = hexadecimal HMAC-SHA256 of <delivery_id>.<timestamp>.<raw_body> with the endpoint secret as key", () => {
    assert.isAbove(receiver.received.length, 0)
    for (const { body, deliveryId, headers } of receiver.received) {
      const content = `${deliveryId}.${headers["x-service-webhook-timestamp"]}.${body}`
      const hex = createHmac("sha256", endpoint.json.secret).update(content).digest("hex")
      assert.strictEqual(headers["x-service-webhook-signature"], `v1=${hex}`)
    }
  })

  it("Its id is unique per (event, endpoint)", () => {
    const events = new Set(receiver.received.map((it) => it.event.id))
    assert.strictEqual(new Set(receiver.received.map((it) => it.deliveryId)).size, events.size)
  })
})

/** docs/reference/requirements.md#errors */
describe("Errors and Versioning", () => {
  it("invalid parameters give 400 Bad Request, a JSON object compliant with RFC 9457 with a service error code and a message", async () => {
    const answer = await gateway.call("POST", image, { prompt: "x", size: "1*1", seed: -1 })
    assert.strictEqual(answer.status, 400)
    assert.strictEqual(answer.headers.get("content-type"), "application/problem+json")
    assert.strictEqual(answer.json.code, 2001)
    assert.sameMembers(
      answer.json.errors.map((it: { readonly pointer: string }) => it.pointer),
      ["#/size", "#/seed"]
    )
  })

  it("A task that fails during execution is not an HTTP error on GET", async () => {
    const failed = await run(image, { prompt: "x [[sim:fail]]" })
    assert.strictEqual(failed.status, 200)
    const { id } = failed.json.task_info
    const { event } = await received("task.failed", id)
    assert.deepStrictEqual(event.data.payload.task_info.error, failed.json.task_info.error)
  })

  it("Vendor paths carry the version segment v1", async () => {
    const path = image.replace("/v1/", "/v2/")
    assert.strictEqual((await gateway.call("POST", path, { prompt: "x" })).status, 404)
  })
})
