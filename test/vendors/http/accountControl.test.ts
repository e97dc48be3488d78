import { assert } from "@effect/vitest"
import { Effect } from "effect"
import { afterAll, beforeAll, beforeEach } from "vitest"
import { dashscope } from "../../../src/testing/vendors/DashScopeProtocol.ts"
import { eventually, layerGateway, makeUser, operator } from "../../support/gateway.ts"
import { liveLayer } from "../../support/liveLayer.ts"
import { mockOpenAi, openAiScript } from "../../support/mockOpenAi.ts"
import { json } from "../../support/mockVendors.ts"
import { Upstream } from "../../support/upstreams/Upstream.ts"

/** docs/reference/vendors.md#draining-an-account */

const first = await mockOpenAi()
const second = await mockOpenAi()
const alibaba = await Upstream.start(dashscope)

beforeAll(() => {
  alibaba.reset()
})
beforeEach(() => {
  for (const vendor of [first, second]) {
    vendor.seen.length = 0
    vendor.script = openAiScript
  }
})
afterAll(async () => {
  await Promise.all([first.close(), second.close(), alibaba.close()])
})

const env = {
  OPENAI_API_KEY: [
    `sk-secret-aaaa;name=a;base=${first.origin}/v1`,
    `sk-secret-bbbb;weight=2;name=b;concurrent=3;base=${second.origin}/v1`
  ].join(","),
  DASHSCOPE_API_KEY: `${alibaba.key};name=main`,
  DASHSCOPE_BASE_URL: alibaba.url
}

const chat = { model: "gpt-4o", max_tokens: 10, messages: [] }
const image = "/vendors/alibaba/v1/text-to-image-preview/generation"
const prompt = { prompt: "A lighthouse", n: 1 }

liveLayer(layerGateway({ env, areVendorsLive: true }))("vendor accounts", (it) => {
  it.effect("are listed by GET /accounts without their keys, only for the operator", () =>
    Effect.gen(function* () {
      const listed = yield* operator("GET", "/manage/v1/accounts")
      assert.strictEqual(listed.status, 200, listed.text)
      assert.deepStrictEqual(
        listed.json.data.map((it: { id: string }) => it.id),
        ["openai:a", "openai:b", "dashscope:main"]
      )
      assert.deepStrictEqual(listed.json.data[1], {
        id: "openai:b",
        provider: "openai",
        base_url: `${second.origin}/v1`,
        weight: 2,
        configured: true,
        status: "active",
        draining_since: null,
        health: "healthy",
        circuit: "closed",
        paused_seconds: 0,
        models: [],
        slots: { limit: 3, held: 0, waiting: 0 },
        rate: [],
        spend_today: "0.00",
        last_fault: null,
        failed_check: null
      })
      assert.notInclude(listed.text, "sk-secret")
      const { call } = yield* makeUser()
      for (const [method, route] of [
        ["GET", "/accounts"],
        ["POST", "/accounts/openai:a/drain"],
        ["POST", "/accounts/openai:a/resume"],
        ["POST", "/accounts/openai:a/check"]
      ] as const) {
        const refused = yield* call(method, `/manage/v1${route}`)
        assert.deepStrictEqual([refused.status, refused.json.code], [403, 1004], route)
      }
      const unknown = yield* operator("POST", "/manage/v1/accounts/openai:c/drain")
      assert.deepStrictEqual([unknown.status, unknown.json.code], [404, 2005])
    })
  )

  it.effect("get no new calls while they drain, and a call is 5003 if all drain", () =>
    Effect.gen(function* () {
      const { call } = yield* makeUser()
      const ask = Effect.gen(function* () {
        for (let n = 0; n < 6; n += 1) yield* call("POST", "/v1/chat/completions", chat)
        const counts = [first.seen.length, second.seen.length]
        first.seen.length = 0
        second.seen.length = 0
        return counts
      })
      assert.deepStrictEqual(yield* ask, [2, 4])
      const drained = yield* operator("POST", "/manage/v1/accounts/openai:a/drain")
      assert.strictEqual(drained.json.status, "draining", drained.text)
      assert.deepStrictEqual(yield* ask, [0, 6])
      const again = yield* operator("POST", "/manage/v1/accounts/openai:a/drain")
      assert.strictEqual(again.json.draining_since, drained.json.draining_since)
      yield* operator("POST", "/manage/v1/accounts/openai:b/drain")
      const refused = yield* call("POST", "/v1/chat/completions", chat)
      assert.deepStrictEqual([refused.status, refused.json.code], [503, 5003])
      assert.isTrue(refused.headers.has("retry-after"))
      for (const name of ["a", "b"]) {
        const resumed = yield* operator("POST", `/manage/v1/accounts/openai:${name}/resume`)
        assert.deepInclude(resumed.json, { status: "active", draining_since: null })
      }
      assert.deepStrictEqual(yield* ask, [2, 4])
    })
  )

  it.effect("complete their tasks while they drain, and creates that need them are refused", () =>
    Effect.gen(function* () {
      const { call } = yield* makeUser()
      const made = yield* call("POST", image, prompt)
      assert.strictEqual(made.status, 202, made.text)
      yield* operator("POST", "/manage/v1/accounts/dashscope:main/drain")
      const refused = yield* call("POST", image, prompt)
      assert.deepStrictEqual([refused.status, refused.json.code], [503, 5003])
      const task = yield* eventually(
        call("GET", `${image}/${made.json.task_info.id}`),
        ({ json }) => ["completed", "failed"].includes(json.task_info.status)
      )
      assert.strictEqual(task.json.task_info.status, "completed", task.text)
      yield* operator("POST", "/manage/v1/accounts/dashscope:main/resume")
      assert.strictEqual((yield* call("POST", image, prompt)).status, 202)
    })
  )

  it.effect(
    "are checked with a free call, and the check says what the operator has to repair",
    () =>
      Effect.gen(function* () {
        const good = yield* operator("POST", "/manage/v1/accounts/openai:a/check")
        assert.deepInclude(good.json, { ok: true, http_status: 200, detail: null })
        assert.deepStrictEqual(
          first.seen.map(({ headers, method, url }) => [method, url, headers.authorization]),
          [["GET", "/v1/models", "Bearer sk-secret-aaaa"]]
        )
        first.script = (_, response) =>
          json(response, 401, { error: { message: "Incorrect API key provided: sk-secret-aaaa" } })
        const bad = yield* operator("POST", "/manage/v1/accounts/openai:a/check")
        assert.deepInclude(bad.json, { ok: false, http_status: 401 })
        assert.match(bad.json.detail, /API key/u)
        const { data } = (yield* operator("GET", "/manage/v1/accounts")).json
        assert.strictEqual(data[0].id, "openai:a")
        assert.isAbove(data[0].paused_seconds, 0)
        assert.deepInclude(data[0].last_fault, { http_status: 401, model: "GET /v1/models" })
        assert.match(data[0].last_fault.remedy, /API key/u)
        assert.notInclude(JSON.stringify([bad.json, data]), "sk-secret")
        assert.strictEqual(data[0].health, "unavailable")
      })
  )

  it.effect("are unavailable after a failed check until a check or a call succeeds", () =>
    Effect.gen(function* () {
      const { call } = yield* makeUser()
      const shown = Effect.map(operator("GET", "/manage/v1/accounts"), ({ json }) => json.data[1])
      const check = operator("POST", "/manage/v1/accounts/openai:b/check")
      yield* operator("POST", "/manage/v1/accounts/openai:a/drain")
      for (const [end, succeed] of [
        ["check", check],
        ["call", call("POST", "/v1/chat/completions", chat)]
      ] as const) {
        second.script = (_, response) => json(response, 500, { error: { message: "broken" } })
        assert.deepInclude((yield* check).json, { ok: false, http_status: 500 })
        const failed = yield* shown
        assert.deepInclude(failed, { id: "openai:b", health: "unavailable" }, end)
        const { at, ...found } = failed.failed_check
        assert.deepStrictEqual(found, {
          http_status: 500,
          detail: "The vendor returned HTTP 500"
        })
        assert.match(at, /^\d{4}-/u)
        // Work continues, because the operator decides what a failed check means
        second.script = openAiScript
        assert.strictEqual((yield* succeed).status, 200)
        assert.deepInclude(yield* shown, { health: "healthy", failed_check: null }, end)
      }
      yield* operator("POST", "/manage/v1/accounts/openai:a/resume")
    })
  )
})
