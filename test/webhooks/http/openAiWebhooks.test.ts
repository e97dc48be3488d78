import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import OpenAI from "openai"
import { deliveryHeaders } from "../../../src/webhooks/Signature.ts"
import type { WebhookRequest } from "../../../src/webhooks/WebhookSender.ts"
import { arrived, eventOf } from "../../support/deliveries.ts"
import {
  advance,
  eventually,
  GatewayHttp,
  layerGateway,
  makeUser,
  readResult
} from "../../support/gateway.ts"
import type { User } from "../../support/gateway.ts"
import { stores } from "../../support/stores.ts"

const endpoints = "/manage/v1/webhook-endpoints"
const deliveries = "/manage/v1/webhook-deliveries"
const image = "/vendors/alibaba/v1/text-to-image-max/generation"
const video = "/vendors/service/v1/text-to-video-spark/generation"
const all = ["task.created", "task.succeeded", "task.failed"]

/** Reads it like a receiver with OpenAI's client, which verifies the signature. */
const unwrap = (request: WebhookRequest, secret: string) =>
  Effect.promise(async () => {
    const headers = deliveryHeaders("Service", request, request.secret, request.previousSecret)
    const client = new OpenAI({ apiKey: "none", webhookSecret: secret })
    const now = Date.now
    Date.now = () => request.timestampSeconds * 1000
    try {
      return await client.webhooks.unwrap(new TextDecoder().decode(request.body), { ...headers })
    } finally {
      Date.now = now
    }
  })

const respond = Effect.fnUntraced(function* (user: User, input: string, more = {}) {
  const created = yield* user.call("POST", "/v1/responses", {
    model: "gpt-4o",
    background: true,
    input,
    ...more
  })
  assert.strictEqual(created.status, 200, created.text)
  return created.json.id as string
})

/** Creates a batch of one request. */
const order = Effect.fnUntraced(function* (user: User, more = {}) {
  const http = yield* GatewayHttp
  const line = {
    custom_id: "a",
    method: "POST",
    url: "/v1/chat/completions",
    body: { model: "gpt-4o-mini", messages: [{ role: "user", content: "Hello" }] }
  }
  const body = new FormData()
  body.set("purpose", "batch")
  body.set("file", new File([JSON.stringify(line)], "requests.jsonl"))
  const headers = { authorization: `Bearer ${user.key}` }
  const uploaded = yield* http.fetch("/v1/files", { method: "POST", headers, body })
  const file = yield* Effect.promise(() => readResult(uploaded))
  return yield* user.call("POST", "/v1/batches", {
    input_file_id: file.json.id,
    endpoint: "/v1/chat/completions",
    completion_window: "24h",
    ...more
  })
})

const ordered = (user: User, more = {}) =>
  Effect.map(order(user, more), ({ json, status, text }) => {
    assert.strictEqual(status, 200, text)
    return json.id as string
  })

const endpointOf = (user: User, url: string, events: ReadonlyArray<string>, format = "openai") =>
  Effect.map(user.call("POST", endpoints, { url, events, format }), ({ json, status, text }) => {
    assert.strictEqual(status, 201, text)
    return json as { readonly id: string; readonly secret: string; readonly format: string }
  })

/** docs/reference/webhooks.md#openais-format */
layer(layerGateway({ database: stores.postgres }))("webhooks in OpenAI's format", (it) => {
  it.effect("send responses as OpenAI's events, which its client verifies", () =>
    Effect.gen(function* () {
      const user = yield* makeUser()
      const [own, plain] = ["https://127.0.0.1/openai", "https://127.0.0.1/gateway"]
      const made = yield* endpointOf(user, own, all)
      assert.strictEqual(made.format, "openai")
      yield* endpointOf(user, plain, all, "gateway")
      const done = yield* respond(user, "Where to?")
      const cut = yield* respond(user, "Where to?", { max_output_tokens: 3 })
      const failed = yield* respond(user, "[[sim:fail]] Where to?")
      const cancelled = yield* respond(user, "[[sim:slow=60s]] Where to?")
      yield* user.call("POST", `/v1/responses/${cancelled}/cancel`)
      yield* advance("20 seconds")
      // Each was also created
      const sent = yield* arrived(own, 8)
      const found = new Map<string, string>()
      for (const request of sent) {
        const event = yield* unwrap(request, made.secret)
        if (!event.type.startsWith("response.")) continue
        assert.strictEqual(event.object, "event")
        assert.isTrue(Number.isInteger(event.created_at))
        assert.match(event.id, /^evt_/u)
        found.set(eventOf(request).data.id, event.type)
      }
      assert.deepStrictEqual(
        found,
        new Map([
          [done, "response.completed"],
          [cut, "response.incomplete"],
          [failed, "response.failed"],
          [cancelled, "response.cancelled"]
        ])
      )
      // The others have the specification's envelope
      const types = (yield* arrived(plain, 8)).map((request) => eventOf(request).type)
      assert.sameMembers([...new Set(types)], all)
    })
  )

  it.effect("send batches as OpenAI's events", () =>
    Effect.gen(function* () {
      const user = yield* makeUser()
      const url = "https://127.0.0.1/batches"
      const { secret } = yield* endpointOf(user, url, ["batch.completed", "batch.cancelled"])
      const [done, cancelled] = [yield* ordered(user), yield* ordered(user)]
      yield* user.call("POST", `/v1/batches/${cancelled}/cancel`)
      const http = Effect.andThen(advance("2 seconds"), user.call("GET", `/v1/batches/${done}`))
      yield* eventually(http, ({ json }) => json.status === "completed")
      yield* advance("2 seconds")
      const found = new Map<string, string>()
      for (const request of yield* arrived(url, 2)) {
        const { type } = yield* unwrap(request, secret)
        found.set(eventOf(request).data.id, type)
      }
      assert.deepStrictEqual(
        found,
        new Map([
          [done, "batch.completed"],
          [cancelled, "batch.cancelled"]
        ])
      )
    })
  )

  it.effect("can be given with a batch", () =>
    Effect.gen(function* () {
      const user = yield* makeUser()
      const { secret } = (yield* user.call("POST", "/manage/v1/webhook-secret/rotate")).json
      const url = "https://127.0.0.1/own?batch"
      const webhook = { url, format: "openai", events: ["batch.completed", "task.created"] }
      const id = yield* ordered(user, { webhook, metadata: { order: "1" } })
      yield* ordered(user, { webhook: null })
      const read = Effect.andThen(advance("2 seconds"), user.call("GET", `/v1/batches/${id}`))
      const done = yield* eventually(read, ({ json }) => json.status === "completed")
      assert.notProperty(done.json, "webhook")
      yield* advance("2 seconds")
      const [first, second, ...others] = yield* arrived(url, 2)
      assert.deepStrictEqual(others, [])
      assert.strictEqual(eventOf(first!).type, "task.created")
      const event = yield* unwrap(second!, secret)
      assert.deepInclude(event, { type: "batch.completed", data: { id } })
      const wrong = yield* order(user, { webhook: { url, events: ["batch.completed"] } })
      assert.deepStrictEqual(wrong.json.errors, [
        { pointer: "#/webhook/events/0", detail: "batch.completed needs the format openai" }
      ])
      const refused = yield* order(user, { webhook: { url: "http://127.0.0.1/" } })
      assert.strictEqual(refused.json.code, 2011, refused.text)
      assert.strictEqual(refused.json.errors[0].pointer, "#/webhook/url")
    })
  )

  it.effect("keep our envelope for events that OpenAI does not have", () =>
    Effect.gen(function* () {
      const user = yield* makeUser()
      const url = "https://127.0.0.1/mixed"
      const { secret } = yield* endpointOf(user, url, ["task.succeeded"])
      const picture = yield* user.call("POST", image, { prompt: "a" })
      const film = yield* user.call("POST", video, { prompt: "a" })
      assert.strictEqual(film.status, 202, film.text)
      yield* advance("20 seconds")
      const sent = yield* arrived(url, 2)
      for (const request of sent) yield* unwrap(request, secret)
      const bodies = sent.map(eventOf)
      const ours = bodies.find(({ type }) => type === "task.succeeded")
      const { created_at, id, ...rest } = ours
      assert.match(id, /^evt_/u)
      assert.match(created_at, /^\d{4}-\d\d-\d\dT/u)
      const { json: payload } = yield* user.call("GET", `${image}/${picture.json.task_info.id}`)
      assert.deepStrictEqual(rest, {
        type: "task.succeeded",
        data: { vendor: "alibaba", model_name: "text-to-image-max", payload }
      })
      const theirs = bodies.find(({ type }) => type === "video.completed")
      assert.deepStrictEqual(theirs.data, { id: film.json.task_info.id })
    })
  )

  it.effect(
    "never have an event of another format after concurrent changes of format and events",
    () =>
      Effect.gen(function* () {
        const user = yield* makeUser()
        const path = "/manage/v1/webhook-endpoints"
        const events = ["task.succeeded"]
        const hook = { url: "https://127.0.0.1/hook", events, format: "openai" }
        const { id } = (yield* user.call("POST", path, hook)).json
        const change = (fields: object) => user.call("PATCH", `${path}/${id}`, fields)
        for (let round = 0; round < 10; round += 1) {
          yield* change({ format: "openai", events })
          const both = [change({ format: "gateway" }), change({ events: ["response.completed"] })]
          const statuses = yield* Effect.all(both, { concurrency: "unbounded" })
          assert.deepStrictEqual(statuses.map(({ status }) => status).toSorted(), [200, 400])
        }
      })
  )

  it.effect("accept OpenAI's event names, which no other format accepts", () =>
    Effect.gen(function* () {
      const user = yield* makeUser()
      const url = "https://127.0.0.1/named"
      const { id } = yield* endpointOf(user, url, ["response.failed"])
      yield* respond(user, "Where to?")
      const failed = yield* respond(user, "[[sim:fail]] Where to?")
      yield* advance("20 seconds")
      const [first, ...more] = yield* arrived(url, 1)
      assert.deepStrictEqual(more, [])
      assert.deepStrictEqual(eventOf(first!).data, { id: failed })
      const fault = { pointer: "#/events/0", detail: "response.failed needs the format openai" }
      const change = yield* user.call("PATCH", `${endpoints}/${id}`, { format: "gateway" })
      assert.strictEqual(change.status, 400)
      assert.deepStrictEqual(change.json.errors, [fault])
      const created = yield* user.call("POST", endpoints, { url, events: ["response.failed"] })
      assert.deepStrictEqual(created.json.errors, [fault])
      const named = yield* user.call("POST", image, {
        prompt: "a",
        webhook: { url, events: ["response.failed"] }
      })
      assert.deepStrictEqual(named.json.errors, [
        { pointer: "#/webhook/events/0", detail: "response.failed needs the format openai" }
      ])
      const both = { format: "gateway", events: ["task.failed"] }
      const changed = yield* user.call("PATCH", `${endpoints}/${id}`, both)
      assert.strictEqual(changed.status, 200, changed.text)
      assert.strictEqual(changed.json.format, "gateway")
    })
  )

  it.effect("can be given with a background response", () =>
    Effect.gen(function* () {
      const user = yield* makeUser()
      const { secret } = (yield* user.call("POST", "/manage/v1/webhook-secret/rotate")).json
      const url = "https://127.0.0.1/own?response"
      const webhook = { url, format: "openai" }
      const id = yield* respond(user, "Where to?", { webhook, metadata: { order: "1" } })
      yield* advance("20 seconds")
      const [sent] = yield* arrived(url, 1)
      const event = yield* unwrap(sent!, secret)
      assert.strictEqual(event.type, "response.completed")
      assert.deepStrictEqual(event.data, { id })
      // The vendor did not receive it, and the response does not show it
      const read = yield* user.call("GET", `/v1/responses/${id}`)
      assert.strictEqual(read.json.status, "completed", read.text)
      assert.notProperty(read.json, "webhook")
      // The log has the type and the bytes that were sent, and a redelivery sends the same
      const log = yield* user.call("GET", `${deliveries}?type=response.completed`)
      const [delivery] = log.json.data
      assert.strictEqual(delivery.webhook_url, url)
      const shown = yield* user.call("GET", `${deliveries}/${delivery.id}`)
      assert.strictEqual(shown.json.body, new TextDecoder().decode(sent!.body))
      yield* user.call("POST", `${deliveries}/${delivery.id}/redeliver`)
      const [, again] = yield* arrived(url, 2)
      assert.deepStrictEqual(again!.body, sent!.body)
      assert.strictEqual(again!.deliveryId, sent!.deliveryId)
      const refused = yield* user.call("POST", "/v1/responses", {
        model: "gpt-4o",
        background: true,
        input: "a",
        webhook: { url: "http://127.0.0.1/", format: "openai" }
      })
      assert.strictEqual(refused.json.code, 2011, refused.text)
      assert.strictEqual(refused.json.errors[0].pointer, "#/webhook/url")
    })
  )

  it.effect("can be given with videos in OpenAI's shape", () =>
    Effect.gen(function* () {
      const user = yield* makeUser()
      const url = "https://127.0.0.1/shaped"
      const webhook = { url, format: "openai" }
      const film = yield* user.call("POST", "/v1/videos", {
        model: "text-to-video-spark",
        prompt: "a",
        webhook
      })
      assert.strictEqual(film.status, 200, film.text)
      yield* advance("20 seconds")
      const [sent] = yield* arrived(url, 1)
      assert.deepStrictEqual(eventOf(sent!).data, { id: film.json.id })
      assert.strictEqual(eventOf(sent!).type, "video.completed")
    })
  )
})
