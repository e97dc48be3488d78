import { writeFileSync } from "node:fs"
import { assert, describe, it } from "vitest"
import { catalogFile, triedOn } from "../../support/aliases.ts"
import { adminToken } from "../../support/gateway.ts"
import { anthropicScript, mockAnthropic } from "../../support/mockAnthropic.ts"
import { mockOpenAi, openAiScript } from "../../support/mockOpenAi.ts"
import { json, upstreamOfTests } from "../../support/mockVendors.ts"
import type { MockVendor, Script } from "../../support/mockVendors.ts"
import { jsonOf, gatewayOfTests } from "../../support/passthroughGateway.ts"

const catalog = {
  // Served by the simulator, because its provider has no key
  ...triedOn("gemini"),
  aliases: [
    {
      alias: "mixed",
      vendor: "openai",
      to: [{ model: "tried/chat-1" }, { model: "openai/gpt-4o" }]
    },
    { alias: "chat", to: [{ model: "openai/gpt-4o" }, { model: "openai/gpt-4o-mini" }] },
    {
      alias: "claude",
      to: [{ model: "anthropic/claude-opus-5" }, { model: "anthropic/claude-opus-4-8" }]
    }
  ]
}

const file = catalogFile(catalog)

/** Responds like this for one model, and as usual for all others. */
const refusing =
  (model: string, usual: Script, refuse: Script): Script =>
  (request, response) =>
    JSON.parse(request.body === "" ? "{}" : request.body).model === model
      ? refuse(request, response)
      : usual(request, response)

const modelsSeen = (vendor: MockVendor) => vendor.seen.map(({ body }) => JSON.parse(body).model)

const reset = () => {
  openAi.seen.length = 0
  anthropic.seen.length = 0
  openAi.script = openAiScript
  anthropic.script = anthropicScript
}

const chat = { model: "chat", max_tokens: 600, messages: [{ role: "user", content: "Hi" }] }
const messages = { ...chat, model: "claude" }

/** A brief 429: the pause is over when the next test begins. */
const busy: Script = (_, response) =>
  json(response, 429, { error: { message: "slow down" } }, { "retry-after": "0" })

const openAi = await upstreamOfTests(mockOpenAi())
const anthropic = await upstreamOfTests(mockAnthropic())
const gateway = await gatewayOfTests({
  OPENAI_API_KEY: "sk-secret-a",
  OPENAI_BASE_URL: `${openAi.origin}/v1`,
  ANTHROPIC_API_KEY: "sk-secret-b",
  ANTHROPIC_BASE_URL: anthropic.origin,
  UPSTREAM_TIMEOUT: "1 second",
  CATALOG_FILE: file
})

describe("a call that names an alias", () => {
  it("goes to the first model, and its receipt has the name and price of that model", async () => {
    reset()
    const response = await gateway.post("/v1/chat/completions", chat)
    assert.equal(response.status, 200)
    assert.deepEqual(modelsSeen(openAi), ["gpt-4o"])
    assert.equal(response.headers.get("x-service-model"), "openai/gpt-4o")
    assert.equal(response.headers.get("x-service-skipped"), null)
    const call = await gateway.newest()
    assert.deepEqual(
      [call.vendor, call.model, call.alias],
      ["openai", "gpt-4o", { alias: "chat", skipped: [] }]
    )
    assert.isTrue(call.captured > 0n && call.captured <= call.held)
  })

  for (const [dialect, path, body, first, second] of [
    ["openai", "/v1/chat/completions", chat, "gpt-4o", "gpt-4o-mini"],
    ["anthropic", "/v1/messages", messages, "claude-opus-5", "claude-opus-4-8"]
  ] as const) {
    const vendor = () => (dialect === "openai" ? openAi : anthropic)
    const usual = dialect === "openai" ? openAiScript : anthropicScript

    for (const stream of [false, true]) {
      it(`${dialect}${stream ? ", as a stream" : ""}: goes to the next model after a rate limit, within the hold of the most expensive`, async () => {
        reset()
        const plain = await gateway.post(path, { ...body, model: first })
        await plain.text()
        const { held } = await gateway.newest()
        reset()
        vendor().script = refusing(first, usual, busy)
        const response = await gateway.post(path, { ...body, stream })
        const text = await response.text()
        assert.equal(response.status, 200, text)
        assert.deepEqual(modelsSeen(vendor()), [first, second])
        assert.equal(response.headers.get("x-service-model"), `${dialect}/${second}`)
        assert.equal(
          response.headers.get("x-service-skipped"),
          `"${dialect}/${first}";reason=rate_limited`
        )
        const call = await gateway.newest()
        assert.deepEqual([call.vendor, call.model], [dialect, second])
        assert.deepEqual(call.alias, {
          alias: body.model,
          skipped: [{ vendor: dialect, model: first, reason: "rate_limited" }]
        })
        // The alias's name is a few bytes shorter than the model's
        assert.isTrue(call.held >= held - 10_000n, `${call.held} of ${held}`)
        assert.isTrue(call.captured > 0n && call.captured <= call.held)
      })
    }

    it(`${dialect}: is not repeated at the next model if it may have been executed or was refused for its content`, async () => {
      const answers: ReadonlyArray<readonly [number, Script]> = [
        [
          400,
          (_, response) =>
            json(response, 400, { error: { message: "refused", code: "content_policy" } })
        ],
        [500, (_, response) => json(response, 500, {})],
        [502, (_, response) => response.destroy()],
        [504, () => {}]
      ]
      for (const [status, answer] of answers) {
        reset()
        vendor().script = refusing(first, usual, answer)
        const response = await gateway.post(path, body)
        await response.text()
        assert.equal(response.status, status)
        assert.deepEqual(modelsSeen(vendor()), [first])
        const call = await gateway.newest()
        assert.deepEqual([call.outcome, call.captured], ["released", 0n], String(status))
      }
    })
  }

  it("is sent as the client wrote it except for the model, with its numbers, spaces and names", async () => {
    const text = (model: string) =>
      `{ "seed": 12345678901234567890, "mod\\u0065l" :"${model}", "top_p":1.0,"max_tokens":600,
        "messages":[{"role":"user","content":"{\\"model\\":"}] }`
    for (const mark of ["", "\uFEFF"]) {
      reset()
      openAi.script = refusing("gpt-4o", openAiScript, busy)
      const response = await fetch(`${gateway.origin}/v1/chat/completions`, {
        method: "POST",
        headers: { authorization: `Bearer ${gateway.key}`, "content-type": "application/json" },
        body: mark + text("chat")
      })
      assert.equal(response.status, 200, await response.text())
      assert.deepEqual(
        openAi.seen.map(({ body }) => body),
        [text("gpt-4o"), text("gpt-4o-mini")]
      )
    }
  })

  it("keeps its models and their prices through a reload, which applies to the next call", async () => {
    const load = async (content: object) => {
      writeFileSync(file, JSON.stringify(content))
      const response = await fetch(`${gateway.origin}/manage/v1/catalog/reload`, {
        method: "POST",
        headers: { authorization: `Bearer ${adminToken}` }
      })
      assert.equal(response.status, 200, await response.text())
    }
    const aliases = [{ alias: "chat", to: [{ model: "openai/gpt-4o" }] }]
    reset()
    let loaded = Promise.resolve()
    openAi.script = refusing("gpt-4o", openAiScript, (request, response) => {
      loaded = loaded.then(() => load({ aliases }))
      void loaded.then(() => busy(request, response))
    })
    const first = await gateway.post("/v1/chat/completions", chat)
    assert.equal(first.status, 200, await first.text())
    assert.equal(first.headers.get("x-service-model"), "openai/gpt-4o-mini")
    const second = await gateway.post("/v1/chat/completions", chat)
    assert.equal(second.status, 429, await second.text())
    assert.deepEqual(modelsSeen(openAi), ["gpt-4o", "gpt-4o-mini", "gpt-4o"])
    await load(catalog)
  })

  it("is never served by the simulator if a vendor is live, nor by a vendor without the route", async () => {
    for (const [path, body, reason] of [
      ["/v1/chat/completions", chat, "sandbox"],
      ["/v1/responses", { max_output_tokens: 600, input: "Hi" }, "no_route"]
    ] as const) {
      reset()
      const response = await gateway.post(path, { ...body, model: "mixed" })
      assert.equal(response.status, 200, await response.text())
      assert.equal(response.headers.get("x-service-model"), "openai/gpt-4o")
      assert.equal(response.headers.get("x-service-skipped"), `"tried/chat-1";reason=${reason}`)
      assert.equal(response.headers.get("x-service-sandbox"), null)
      assert.deepEqual(modelsSeen(openAi), ["gpt-4o"])
    }
  })

  it("gets the response of the last model if all models are busy, and nothing stays held", async () => {
    reset()
    openAi.script = busy
    const response = await gateway.post("/v1/chat/completions", chat)
    assert.equal(response.status, 429)
    assert.deepEqual(modelsSeen(openAi), ["gpt-4o", "gpt-4o-mini"])
    const call = await gateway.newest()
    assert.deepEqual([call.outcome, call.captured, call.model], ["released", 0n, "gpt-4o-mini"])
    assert.equal(await gateway.drift(), 0)
  })

  it("is allowed for a key that allows each of its models, whether or not it allows the alias", async () => {
    for (const [allowed_models, status] of [
      [["chat"], 403],
      [["gpt-4o"], 403],
      [["chat", "gpt-4o-mini"], 403],
      [["gpt-4o", "gpt-4o-mini"], 200]
    ] as const) {
      reset()
      const keys = "/manage/v1/api-keys"
      const made = await gateway.post(keys, { name: "some", scopes: ["inference"] })
      const { id, key } = (await made.json()) as { readonly id: string; readonly key: string }
      await gateway.post(`${keys}/${id}`, { allowed_models }, {}, { method: "PATCH" })
      const authorization = `Bearer ${key}`
      const response = await gateway.post("/v1/chat/completions", chat, { authorization })
      assert.equal(response.status, status, await response.text())
      assert.equal(openAi.seen.length, status === 200 ? 1 : 0)
      const read = async (path: string) =>
        fetch(`${gateway.origin}${path}`, { headers: { authorization } })
      const list = (await (await read("/v1/models")).json()) as { data: Array<{ id: string }> }
      assert.equal(
        list.data.some(({ id }) => id === "chat"),
        status === 200
      )
      assert.equal((await read("/v1/models/chat")).status, status)
    }
  })

  it("is refused before anything is held if its most expensive model exceeds X-Service-Max-Cost", async () => {
    reset()
    const refused = await gateway.post("/v1/chat/completions", chat, {
      "x-service-max-cost": "0.01"
    })
    assert.equal((await jsonOf(refused)).code, 1103)
    assert.equal(openAi.seen.length, 0)
  })

  it("is refused for the faults that its models refuse, and the alias is listed as a model", async () => {
    reset()
    const get = async (path: string) => {
      const headers = { authorization: `Bearer ${gateway.key}` }
      return (await fetch(`${gateway.origin}${path}`, { headers })).json()
    }
    const list = (await get("/v1/models")) as { data: Array<{ id: string }> }
    assert.deepEqual(
      // The names of other vendors' models contain a slash
      list.data.map(({ id }) => id).filter((id) => !id.includes("/")),
      ["gpt-4o", "mixed", "chat"]
    )
    assert.equal(((await get("/v1/models/chat")) as { id: string }).id, "chat")
    const fault = await gateway.post("/v1/chat/completions", { ...chat, background: true })
    assert.equal((await jsonOf(fault)).code, 2001)
    // A response in the background is created under the name of one model of OpenAI
    for (const model of ["chat", "openai/gpt-4o", "deepseek/deepseek-chat"]) {
      const body = { model, input: "Where to?", background: true }
      const { code, detail } = await jsonOf(await gateway.post("/v1/responses", body))
      assert.equal(code, 2001)
      assert.match(String(detail), /^#\/model: .* by the model's own name$/u)
    }
    const unknown = { model: "none", input: "Where to?", background: true }
    assert.equal((await jsonOf(await gateway.post("/v1/responses", unknown))).code, 2006)
    const other = await gateway.post("/v1/messages", { ...messages, model: "chat" })
    assert.equal((await jsonOf(other)).code, 2006)
  })
})
