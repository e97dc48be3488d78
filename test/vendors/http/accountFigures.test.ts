import { assert } from "@effect/vitest"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { afterAll } from "vitest"
import { OperatorFaults } from "../../../src/tasks/submission/OperatorFaults.ts"
import { dashscope } from "../../../src/testing/vendors/DashScopeProtocol.ts"
import { fal } from "../../../src/testing/vendors/FalProtocol.ts"
import { replicate } from "../../../src/testing/vendors/ReplicateProtocol.ts"
import { eventually, layerGateway, makeUser, operator } from "../../support/gateway.ts"
import { liveLayer } from "../../support/liveLayer.ts"
import { chatCompletion, mockOpenAi, openAiScript } from "../../support/mockOpenAi.ts"
import { json } from "../../support/mockVendors.ts"
import { Upstream } from "../../support/upstreams/Upstream.ts"

/** docs/reference/vendors.md#draining-an-account, ADR 0164 */

const openAi = await mockOpenAi()
const [alibaba, falAi, replicateCom] = await Promise.all([
  Upstream.start(dashscope),
  Upstream.start(fal),
  Upstream.start(replicate)
])
afterAll(() => Promise.all([openAi.close(), alibaba.close(), falAi.close(), replicateCom.close()]))

const env = {
  OPENAI_API_KEY: `sk-secret-aaaa;name=a;base=${openAi.origin}/v1`,
  DASHSCOPE_API_KEY: `${alibaba.key};name=main,sk-wrong;name=wrong;weight=1`,
  DASHSCOPE_BASE_URL: alibaba.url,
  FAL_API_KEY: `${falAi.key};name=good,id:wrong;name=wrong`,
  FAL_BASE_URL: falAi.url,
  REPLICATE_API_KEY: `${replicateCom.key};name=good,r8_wrong;name=wrong`,
  REPLICATE_BASE_URL: replicateCom.url
}

const accountOf = (id: string) =>
  Effect.map(operator("GET", "/manage/v1/accounts"), ({ json }) =>
    json.data.find((it: { readonly id: string }) => it.id === id)
  )

const chat = { model: "gpt-4o", max_tokens: 10, messages: [] }
const image = "/vendors/alibaba/v1/text-to-image-preview/generation"
const prompt = { prompt: "A lighthouse", n: 2 }
const micro = (amount: string) => Math.round(Number(amount) * 1e6)

liveLayer(layerGateway({ env, areVendorsLive: true }))("figures of vendor accounts", (it) => {
  it.effect("show the rate that the vendor last reported", () =>
    Effect.gen(function* () {
      const { call } = yield* makeUser()
      openAi.script = (_, response) =>
        json(response, 200, chatCompletion("gpt-4o"), {
          "x-ratelimit-limit-requests": "500",
          "x-ratelimit-remaining-requests": String(499 - openAi.seen.length),
          "x-ratelimit-reset-requests": "1m0s",
          "x-ratelimit-limit-tokens": "30000",
          "x-ratelimit-remaining-tokens": "29000",
          "x-ratelimit-reset-tokens": "0s"
        })
      openAi.seen.length = 0
      for (let n = 0; n < 3; n += 1) yield* call("POST", "/v1/chat/completions", chat)
      const { rate } = yield* accountOf("openai:a")
      assert.deepInclude(rate[0], { name: "requests", model: "gpt-4o", limit: 500, used: 4 })
      assert.match(rate[0].resets_at, /^\d{4}-/u)
      assert.deepInclude(rate[1], { name: "tokens", limit: 30_000, used: 0 }, "reset since")
    })
  )

  it.effect("show circuit and pause by model, and an account with either as degraded", () =>
    Effect.gen(function* () {
      const { call } = yield* makeUser()
      const ask = (model: string, n: number) =>
        call("POST", "/v1/chat/completions", { ...chat, model, max_tokens: 10 + n })
      openAi.script = (_, response) =>
        json(response, 429, { error: { message: "slow down" } }, { "retry-after": "50" })
      yield* ask("gpt-4o-mini", 0)
      openAi.script = (_, response) => json(response, 500, { error: { message: "oops" } })
      for (let n = 0; n < 5; n += 1) yield* ask("gpt-4.1", n)
      const { circuit, health, models, paused_seconds: paused } = yield* accountOf("openai:a")
      assert.deepStrictEqual([circuit, health], ["open", "degraded"])
      assert.isAbove(paused, 30)
      const found = new Map<string, { circuit: string; paused_seconds: number }>(
        models.map((it: { readonly model: string }) => [it.model, it])
      )
      assert.strictEqual(found.get("gpt-4.1")?.circuit, "open")
      assert.strictEqual(found.get("gpt-4o-mini")?.circuit, "closed")
      assert.isAbove(found.get("gpt-4o-mini")?.paused_seconds ?? 0, 30)
      openAi.script = openAiScript
    })
  )

  it.effect("show exactly what was charged today for calls and tasks, and nothing else", () =>
    Effect.gen(function* () {
      yield* operator("POST", "/manage/v1/accounts/dashscope:wrong/drain")
      const { call } = yield* makeUser()
      for (let n = 0; n < 30; n += 1) yield* call("POST", "/v1/chat/completions", chat)
      const made = yield* call("POST", image, prompt)
      assert.strictEqual(made.status, 202, made.text)
      const rest = yield* call("POST", image, prompt)
      yield* call("DELETE", `${image}/${rest.json.task_info.id}`)
      yield* eventually(
        call("GET", `${image}/${made.json.task_info.id}`),
        ({ json }) => json.task_info.status === "completed"
      )
      const sql = yield* SqlClient.SqlClient
      const expected = eventually(
        sql<{ readonly calls: bigint; readonly open: bigint }>`
            SELECT (SELECT coalesce(sum(captured), 0)::bigint FROM calls WHERE account_id = 'openai:a') AS calls,
              (SELECT count(*) FROM holds WHERE kind = 'call') AS open`,
        ([row]) => row?.open === 0n
      )
      const [{ calls } = { calls: 0n }] = yield* expected
      assert.isAbove(Number(calls), 0)
      const shown = (yield* operator("GET", "/manage/v1/accounts")).json.data
      assert.strictEqual(micro(shown[0].spend_today), Number(calls))
      const cost = micro(made.headers.get("x-service-cost") ?? "")
      const main = shown.find((it: { readonly id: string }) => it.id === "dashscope:main")
      assert.strictEqual(micro(main.spend_today), cost)
      const names = main.rate.map(({ limit, model, name }: Record<string, unknown>) => [
        name,
        model,
        limit
      ])
      assert.deepStrictEqual(names, [
        ["polls", null, 1080],
        ["submits", "wan2.5-t2i-preview", 300]
      ])
      // Claimed in this minute or the previous one
      for (const { used } of main.rate) assert.isAtLeast(used, 0)
      const [total] = yield* sql<{ readonly same: boolean }>`
        SELECT (SELECT sum(credits) FROM account_days) = (SELECT sum(amount) FROM wallet_entries
          WHERE kind = 'capture') AS same`
      assert.isTrue(total?.same)
    })
  )

  it.effect("show the last fault of all processes, even after it was repaired", () =>
    Effect.gen(function* () {
      const { call } = yield* makeUser()
      alibaba.submitFaults.push("operator")
      const made = yield* call("POST", image, prompt)
      const own = `${image}/${made.json.task_info.id}`
      yield* eventually(call("GET", own), ({ json }) => json.task_info.status === "failed")
      const { last_fault: fault } = yield* accountOf("dashscope:main")
      assert.deepInclude(fault, { http_status: 400, model: "wan2.5-t2i-preview" })
      assert.match(fault.remedy, /bill/u)
      const refused = yield* call("POST", image, prompt)
      assert.deepStrictEqual([refused.status, refused.json.code], [503, 5003])
      const faults = yield* OperatorFaults
      yield* faults.clear("dashscope-async@dashscope:main", "wan2.5-t2i-preview")
      const again = yield* call("POST", image, prompt)
      assert.strictEqual(again.status, 202)
      assert.deepStrictEqual((yield* accountOf("dashscope:main")).last_fault, fault)
      // So that no task is running in later tests
      yield* eventually(
        call("GET", `${image}/${again.json.task_info.id}`),
        ({ json }) => json.task_info.status === "completed"
      )
    })
  )

  for (const [id, ok, status, path, detail] of [
    ["dashscope:main", true, 200, "/api/v1/tasks/", undefined],
    ["fal:good", true, 404, /\/requests\/[0-]{36}\/status$/u, undefined],
    ["fal:wrong", false, 401, /\/status$/u, /API key/u],
    ["replicate:good", true, 200, "/v1/account", undefined],
    ["replicate:wrong", false, 401, "/v1/account", /API key/u]
  ] as const) {
    it.effect(`show the result of a check of ${id}, which is one call that buys nothing`, () =>
      Effect.gen(function* () {
        const vendor = { dashscope: alibaba, fal: falAi, replicate: replicateCom }[
          id.split(":")[0] as "dashscope" | "fal" | "replicate"
        ]
        const paid = vendor.paidSubmits
        vendor.seen.length = 0
        const check = yield* operator("POST", `/manage/v1/accounts/${id}/check`)
        assert.deepInclude(check.json, { ok, http_status: status }, check.text)
        if (detail === undefined) assert.isNull(check.json.detail)
        else assert.match(check.json.detail, detail)
        assert.strictEqual(vendor.seen.length, 1)
        assert.strictEqual(vendor.seen[0]?.method, "GET")
        if (typeof path === "string") assert.strictEqual(vendor.seen[0]?.path, path)
        else assert.match(vendor.seen[0]?.path ?? "", path)
        assert.strictEqual(vendor.paidSubmits, paid)
        assert.strictEqual((yield* accountOf(id)).health, ok ? "healthy" : "unavailable")
      })
    )
  }
})
