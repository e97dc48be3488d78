import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, beforeEach, describe, it } from "vitest"
import { mockOpenAi, openAiScript } from "../../support/mockOpenAi.ts"
import { json, upstreamOfTests } from "../../support/mockVendors.ts"
import { gatewayOfTests } from "../../support/passthroughGateway.ts"
import { temporaryFolder } from "../../support/temporaryFolder.ts"
import { until } from "../../support/until.ts"

/**
 * A client that leaves before the response pays for the prompt once the upstream has the request.
 * docs/reference/passthrough.md#metering, ADR 0072.
 */
const upstream = await upstreamOfTests(mockOpenAi())
const file = join(temporaryFolder("catalog"), "catalog.json")
const image = { vendor: "openai", provider: "openai", method: "POST" }
writeFileSync(
  file,
  JSON.stringify({
    routes: [{ ...image, path: "/v1/images/generations", meter: { per: "call", amount: "4.00" } }]
  })
)
const gateway = await gatewayOfTests({
  OPENAI_API_KEY: "sk-vendor-1;weight=1000,sk-vendor-2",
  OPENAI_BASE_URL: upstream.origin,
  ANTHROPIC_API_KEY: "sk-ant-vendor",
  ANTHROPIC_BASE_URL: upstream.origin,
  CATALOG_FILE: file
})
beforeEach(() => {
  upstream.script = () => {}
})

const messages = [{ role: "user", content: "x".repeat(1500) }]
const chat = { model: "gpt-4o", max_tokens: 600, messages }

/** Leaves when `when` is true. Returns the receipt. */
const left = async (
  path: string,
  body: object,
  when: () => boolean = () => upstream.seen.length === 1
) => {
  const controller = new AbortController()
  const call = gateway
    .post(path, body, {}, { signal: controller.signal })
    .then((answer) => answer.text())
  await until(when, { what: "the moment to leave" })
  controller.abort()
  await call.catch(() => {})
  await until(() => upstream.seen.at(-1)!.aborted !== undefined, {
    what: "the upstream is aborted"
  })
  await gateway.settled()
  assert.equal(await gateway.drift(), 0)
  return (await gateway.calls())[0]!
}

const promptTokens = (body: object) => Math.ceil(JSON.stringify(body).length / 4)

describe("a client that leaves before the answer", () => {
  it.each([
    ["a chat", "/v1/chat/completions", chat, 250n],
    ["a chat with a query", "/v1/chat/completions?a=1", chat, 250n],
    ["a chat's stream", "/v1/chat/completions", { ...chat, stream: true }, 250n],
    [
      "a response",
      "/vendors/openai/v1/responses",
      { model: "gpt-4o", input: "x".repeat(99) },
      250n
    ],
    [
      "embeddings",
      "/vendors/openai/v1/embeddings",
      { model: "text-embedding-3-large", input: "x".repeat(999) },
      13n
    ],
    ["messages", "/vendors/anthropic/v1/messages", { ...chat, model: "claude-haiku-4-5" }, 100n]
  ] as const)("pays for the tokens of the prompt: %s", async (_, path, body, rate) => {
    const call = await left(path, body)
    const inputTokens = promptTokens(body)
    assert.deepEqual(
      { ...call.usage, captured: call.captured, outcome: call.outcome, status: call.httpStatus },
      {
        inputTokens,
        outputTokens: 0,
        counted: true,
        captured: BigInt(inputTokens) * rate,
        outcome: "settled",
        status: null
      }
    )
  })

  it("pays for the tokens of the prompt if a stream has begun without an event", async () => {
    upstream.script = (_, response) => {
      response.writeHead(200, { "content-type": "text/event-stream" })
      response.write(": the model thinks\n\n")
    }
    const body = { ...chat, stream: true }
    const controller = new AbortController()
    const answer = await gateway.post(
      "/v1/chat/completions",
      body,
      {},
      { signal: controller.signal }
    )
    assert.equal(answer.status, 200)
    controller.abort()
    await until(() => upstream.seen[0]!.aborted !== undefined, { what: "the upstream is aborted" })
    await gateway.settled()
    const call = (await gateway.calls())[0]!
    assert.equal(call.captured, BigInt(promptTokens(body)) * 250n)
    assert.equal(call.httpStatus, 200)
  })

  it("pays for the call on a route that is charged by the call, also for a stream", async () => {
    const path = "/vendors/openai/v1/images/generations"
    assert.equal((await left(path, { prompt: "x" })).captured, 4_000_000n)
    upstream.seen.length = 0
    upstream.script = (_, response) => {
      response.writeHead(200, { "content-type": "text/event-stream" })
      response.end("data: {}\n\n")
    }
    await (await gateway.post(path, { prompt: "x" })).text()
    await gateway.settled()
    assert.equal((await gateway.calls())[0]!.captured, 4_000_000n)
  })

  it("pays for the prompt if one account refused the call and the other received it", async () => {
    // The second account gets the call, which is charged; the refusal of the first alone would not be
    upstream.script = (request, response) => {
      if (request.headers.authorization === "Bearer sk-vendor-1") {
        json(response, 429, { error: { message: "slow" } }, { "retry-after-ms": "1" })
      }
    }
    const call = await left("/v1/chat/completions", chat, () =>
      upstream.seen.some(({ headers }) => headers.authorization === "Bearer sk-vendor-2")
    )
    assert.equal(call.captured, BigInt(promptTokens(chat)) * 250n)
    upstream.script = openAiScript
  })
})
