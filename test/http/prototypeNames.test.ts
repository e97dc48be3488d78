import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { GatewayHttp, layerGateway, makeUser } from "../support/gateway.ts"
import { rpc } from "../support/mcp.ts"

/** Every name that a plain object inherits, so that a lookup with a client's text would find it. */
const names = Object.getOwnPropertyNames(Object.prototype)

/** `{"__proto__": …}` in source would set the prototype. */
const member = (name: string, value: unknown): object => Object.fromEntries([[name, value]])

const generation = "/vendors/alibaba/v1/text-to-image-max/generation"
const shaped = { model: "text-to-image-max", prompt: "a" }
const video = { model: "text-to-video-spark", prompt: "a" }

layer(layerGateway(), { timeout: "60 seconds" })("names of Object.prototype", (it) => {
  it.effect.each(names)("are unknown fields of every body: %s", (name) =>
    Effect.gen(function* () {
      const user = yield* makeUser()
      for (const [path, body] of [
        [generation, { prompt: "a" }],
        [`${generation}?dry_run=true`, { prompt: "a" }],
        ["/v1/images/generations", shaped],
        ["/v1/videos", video],
        ["/manage/v1/api-keys", { name: "a" }]
      ] as const) {
        const sent = yield* user.call("POST", path, {
          ...body,
          ...member(name, { polluted: true })
        })
        assert.deepStrictEqual([sent.status, sent.json.code], [400, 2001], `${path} ${sent.text}`)
        assert.include(sent.text, name)
      }
      const args = { input: { prompt: "a", ...member(name, "a") }, model: "text-to-image-max" }
      for (const given of [args, { input: { prompt: "a" }, ...member(name, "a") }]) {
        const { text } = yield* rpc(user, "tools/call", { name: "quote", arguments: given })
        assert.include(text, "Unknown field")
      }
      assert.notProperty({}, "polluted")
    })
  )

  it.effect.each(names)("are not values of a field: %s", (name) =>
    Effect.gen(function* () {
      const user = yield* makeUser()
      const images = { model: "image-edit-max", prompt: "a" }
      for (const [path, body] of [
        [generation, { prompt: "a", size: name }],
        [generation, { prompt: "a", ...member("metadata", member("a", { [name]: 1 })) }],
        ["/v1/images/generations", { ...shaped, size: name }],
        ["/v1/images/generations", { ...images, size: name }],
        ["/v1/videos", { ...video, size: name }]
      ] as const) {
        const sent = yield* user.call("POST", path, body)
        assert.deepStrictEqual([sent.status, sent.json.code], [400, 2001], `${path} ${sent.text}`)
      }
    })
  )

  it.effect.each(names)("are not a model, vendor, tool or parameter: %s", (name) =>
    Effect.gen(function* () {
      const user = yield* makeUser()
      const http = yield* GatewayHttp
      for (const [method, path, body, code] of [
        ["POST", "/v1/images/generations", { model: name, prompt: "a" }, 2006],
        ["POST", "/v1/chat/completions", { model: name, messages: [], max_tokens: 5 }, 2006],
        ["POST", `/vendors/${name}/v1/text-to-image-max/generation`, { prompt: "a" }, 2006],
        ["POST", `/vendors/alibaba/v1/${name}/generation`, { prompt: "a" }, 2006],
        ["POST", `/vendors/${name}/v1/chat/completions`, {}, 2006],
        ["POST", `${generation}?${name}=true`, { prompt: "a" }, 2001],
        ["GET", `/manage/v1/tasks?${name}=true`, undefined, 2001],
        ["GET", `/manage/v1/wallet?${name}=true`, undefined, 2001],
        ["GET", `/manage/v1/tasks?metadata.${name}=a`, undefined, 2001],
        ["GET", `/manage/v1/api-keys/${name}`, undefined, 2005]
      ] as const) {
        const sent = yield* user.call(method, path, body)
        assert.strictEqual(sent.json?.code, code, `${method} ${path} ${sent.status} ${sent.text}`)
      }
      const { text } = yield* rpc(user, "tools/call", { name, arguments: {} })
      assert.include(text, "Unknown tool")
      const { json } = yield* rpc(user, name)
      assert.strictEqual(json.error.code, -32601)
      const response = yield* http.fetch("/healthz", { headers: { [name]: "a" } })
      assert.strictEqual(response.status, 200)
    })
  )

  it.effect.each(names)("are accepted as keys of metadata: %s", (name) =>
    Effect.gen(function* () {
      const user = yield* makeUser()
      const body = { prompt: "a", metadata: member(name, "b") }
      const created = yield* user.call("POST", generation, body)
      assert.strictEqual(created.status, 202, created.text)
      const { text } = yield* user.call("GET", `${generation}/${created.json.task_info.id}`)
      assert.include(text, `${JSON.stringify(name)}:"b"`)
    })
  )
})
