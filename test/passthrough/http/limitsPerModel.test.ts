import { afterAll, assert, beforeAll, beforeEach, describe, it } from "vitest"
import { mockOpenAi, openAiScript } from "../../support/mockOpenAi.ts"
import { json, upstreamOfTests } from "../../support/mockVendors.ts"
import type { Script } from "../../support/mockVendors.ts"
import { jsonOf, startGateway } from "../../support/passthroughGateway.ts"
import type { TestGateway } from "../../support/passthroughGateway.ts"

const vendor = await upstreamOfTests(mockOpenAi())
let gateway: TestGateway
let other: string

/** A gateway with one account, in place of the one before. */
const start = async () => {
  await gateway?.stop()
  gateway = await startGateway({ OPENAI_API_KEY: `sk-secret;name=only;base=${vendor.origin}/v1` })
  other = (await gateway.newCaller(1000)).key
}
afterAll(() => gateway.stop())

const chat = (model = "gpt-4o", content = "Hi", key = gateway.key) =>
  gateway.post(
    "/v1/chat/completions",
    { model, max_tokens: 20, messages: [{ role: "user", content }] },
    { authorization: `Bearer ${key}` }
  )
const embed = () =>
  gateway.post("/vendors/openai/v1/embeddings", { model: "text-embedding-3-small", input: "a" })
const models = (key = gateway.key) =>
  fetch(`${gateway.origin}/v1/models`, { headers: { authorization: `Bearer ${key}` } })

/** This reply to calls of gpt-4o, and the usual one to others. */
const onlyGpt4o =
  (reply: Script): Script =>
  (request, response) =>
    JSON.parse(request.body || "{}").model === "gpt-4o"
      ? reply(request, response)
      : openAiScript(request, response)

const rateLimited = (headers: Record<string, string>): Script =>
  onlyGpt4o((_, response) =>
    json(response, 429, { error: { message: "slow down", code: "rate_limit_exceeded" } }, headers)
  )

const broken: Script = onlyGpt4o((_, response) => json(response, 500, { error: {} }))

/** docs/reference/passthrough.md#accounts-and-failover */
describe("limits of one model", { timeout: 120_000 }, () => {
  beforeEach(start)

  it("a 429 affects its own model only, and is relayed again while it lasts", async () => {
    vendor.script = rateLimited({ "retry-after": "30" })
    assert.equal((await chat()).status, 429)
    assert.equal((await chat("gpt-4o-mini")).status, 200)
    assert.equal((await embed()).status, 200)
    assert.equal((await models()).status, 200)
    const again = await chat()
    assert.equal(again.status, 429)
    assert.equal(again.headers.get("retry-after"), "30")
    assert.equal((await jsonOf(again)).error.message, "slow down")
    vendor.script = openAiScript
    assert.equal((await chat()).status, 200)
  })

  it("calls after a 429 that says that nothing is left are refused with 1203 and the rest of the wait", async () => {
    vendor.script = rateLimited({ "retry-after": "30", "x-ratelimit-remaining-requests": "0" })
    const relayed = await chat()
    assert.equal(relayed.status, 429)
    assert.equal((await jsonOf(relayed)).error.message, "slow down")
    const before = vendor.seen.length
    for (const key of [gateway.key, other]) {
      const refused = await chat("gpt-4o", "Hi", key)
      const wait = Number(refused.headers.get("retry-after"))
      assert.equal(refused.status, 429)
      assert.equal((await jsonOf(refused)).code, 1203)
      assert.isTrue(wait > 20 && wait <= 30, `${wait}`)
    }
    assert.equal(vendor.seen.length, before)
    assert.equal((await chat("gpt-4o-mini")).status, 200)
    assert.equal((await embed()).status, 200)
    assert.equal((await models()).status, 200)
    assert.equal((await gateway.settled()).held, 0n)
  })

  it("a refused account is 5003, for all users only after a second user was refused", async () => {
    vendor.script = (_, response) => json(response, 401, { error: { message: "Incorrect key" } })
    for (let i = 0; i < 2; i += 1) {
      const refused = await chat()
      assert.equal(refused.status, 503)
      assert.equal((await jsonOf(refused)).code, 5003)
    }
    assert.equal(vendor.seen.length, 1)
    for (let i = 0; i < 2; i += 1) assert.equal((await chat("gpt-4o", "Hi", other)).status, 503)
    assert.equal((await models((await gateway.newCaller(1000)).key)).status, 503)
    assert.equal(vendor.seen.length, 2)
    const fault =
      /^gateway_vendor_operator_faults_total\{account="openai:only",cause="account"\} 2$/mu
    assert.match(await gateway.metrics(), fault)
  })

  it("a 402 for one user's request does not keep another user from the account", async () => {
    vendor.script = (request, response) =>
      request.body.includes("huge")
        ? json(response, 402, { error: { message: "This request requires more credits" } })
        : openAiScript(request, response)
    assert.equal((await chat("gpt-4o", "huge")).status, 503)
    assert.equal((await chat("gpt-4o", "small", other)).status, 200)
    assert.equal((await chat("gpt-4o", "small")).status, 200)
  })

  it("a scope that the key lacks affects only the route that needs it", async () => {
    vendor.script = (request, response) =>
      request.url === "/v1/models"
        ? json(response, 401, {
            error: {
              message: "You have insufficient permissions for this operation. Missing scopes"
            }
          })
        : openAiScript(request, response)
    for (const key of [gateway.key, other]) assert.equal((await models(key)).status, 503)
    assert.equal((await chat()).status, 200)
  })

  it("five failed requests open the circuit of their model, for all users if two users' requests fail", async () => {
    vendor.script = broken
    for (let i = 0; i < 5; i += 1) assert.equal((await chat("gpt-4o", `${i}`)).status, 500)
    const cut = await chat("gpt-4o", "new")
    assert.equal(cut.status, 503)
    assert.equal((await jsonOf(cut)).code, 5003)
    assert.isAtLeast(Number(cut.headers.get("retry-after")), 1)
    assert.equal((await chat("gpt-4o-mini")).status, 200)
    assert.equal((await models()).status, 200)
    assert.equal(vendor.seen.length, 7)
    assert.equal((await chat("gpt-4o", "Hi", other)).status, 500)
    assert.equal((await chat("gpt-4o", "Hi", other)).status, 503)
    assert.equal((await chat("gpt-4o", "Hi", (await gateway.newCaller(1000)).key)).status, 503)
    assert.equal(vendor.seen.length, 8)
  })
})

/** docs/reference/vendors.md#error-classes */
describe("what limits no model", { timeout: 120_000 }, () => {
  beforeAll(start)

  it("a model that the vendor reports as gone affects no other model, and opens no circuit", async () => {
    for (const [status, code] of [
      [404, "model_not_found"],
      [400, "model_deprecated"],
      [410, "model_not_found"]
    ] as const) {
      const gone = { error: { message: "The model is gone", code } }
      vendor.script = onlyGpt4o((_, response) => json(response, status, gone))
      for (let i = 0; i < 8; i += 1) assert.equal((await chat("gpt-4o", `${i}`)).status, status)
      assert.equal((await chat("gpt-4o-mini")).status, 200)
    }
    const metrics = await gateway.metrics()
    assert.match(metrics, /gateway_account_circuit\{account="openai:only"\} 0/)
    assert.match(metrics, /gateway_account_paused_seconds\{account="openai:only"\} 0/)
    // Without the operator's token no names are shown: docs/reference/http.md#metrics
    for (const token of [null, gateway.key, "other"]) {
      const open = await gateway.metrics(token)
      assert.match(open, /^gateway_wallet_drift 0$/m)
      // Other tests of this worker may have counted for the vendor, which is not a name of a model
      assert.notInclude(open, "openai:only")
      assert.notInclude(open, 'account="')
    }
  })

  it("a 200 that was the last of its window does not keep the only account from calls", async () => {
    const last = { "x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "1h" }
    vendor.script = (_, response) => json(response, 200, {}, last)
    for (const answer of [await chat(), await chat(), await embed(), await models()]) {
      assert.equal(answer.status, 200)
    }
    assert.equal(vendor.seen.length, 4)
  })

  it("one request that always fails opens no circuit, however often it is repeated", async () => {
    vendor.script = broken
    for (let i = 0; i < 8; i += 1) assert.equal((await chat()).status, 500)
    assert.equal(vendor.seen.length, 8)
  })
})
