import { afterAll, assert, beforeAll, beforeEach, describe, it } from "vitest"
import { chatCompletion, mockOpenAi } from "../../support/mockOpenAi.ts"
import { events, json } from "../../support/mockVendors.ts"
import type { MockVendor } from "../../support/mockVendors.ts"
import { startGateway } from "../../support/passthroughGateway.ts"
import type { TestGateway } from "../../support/passthroughGateway.ts"

/** Impossible figures are not used. docs/reference/passthrough.md#usage, ADR 0072. */
let upstream: MockVendor
let gateway: TestGateway

beforeAll(async () => {
  upstream = await mockOpenAi()
  gateway = await startGateway({
    OPENAI_API_KEY: "sk-vendor;name=main",
    OPENAI_BASE_URL: upstream.origin
  })
})
afterAll(async () => {
  await gateway.stop()
  await upstream.close()
})
beforeEach(() => {
  upstream.seen.length = 0
})

const chat = { model: "gpt-4o", max_tokens: 600, messages: [{ role: "user", content: "Hi" }] }

const faults = async (): Promise<number> => {
  const text = await gateway.metrics()
  const line = /^gateway_upstream_usage_faults_total\{account="openai:main"\} (\d+)$/mu.exec(text)
  return Number(line?.[1] ?? 0)
}

const newest = async () => {
  await gateway.settled()
  assert.equal(await gateway.drift(), 0)
  return (await gateway.calls())[0]!
}

const cases: ReadonlyArray<readonly [string, string]> = [
  ["a negative prompt", '{"prompt_tokens":-1000,"completion_tokens":5}'],
  ["a negative answer", '{"prompt_tokens":10,"completion_tokens":-5}'],
  ["a negative part", '{"prompt_tokens":10,"prompt_tokens_details":{"cached_tokens":-9}}'],
  ["a fraction", '{"prompt_tokens":10.5,"completion_tokens":5}'],
  ["a text", '{"prompt_tokens":"10","completion_tokens":5}'],
  ["more than a number can be", '{"prompt_tokens":1e999,"completion_tokens":5}'],
  ["more than the model reads", '{"prompt_tokens":1000000000,"completion_tokens":5}'],
  ["more than the model writes", '{"prompt_tokens":10,"completion_tokens":1000000000}'],
  ["nothing at all", '{"prompt_tokens":0,"completion_tokens":0}']
]

describe("usage figures that cannot be true", () => {
  it.each(cases)(
    "%s: the gateway's own count is settled, and the fault counted",
    async (_, usage) => {
      const before = await faults()
      const answer = JSON.stringify({ ...chatCompletion("gpt-4o"), usage: null })
      const whole = answer.replace('"usage":null', `"usage":${usage}`)
      upstream.script = (_, response) => {
        response.writeHead(200, { "content-type": "application/json" })
        response.end(whole)
      }
      await (await gateway.post("/v1/chat/completions", chat)).text()
      const call = await newest()
      assert.deepEqual(call.usage, {
        inputTokens: Math.ceil(JSON.stringify(chat).length / 4),
        outputTokens: Math.ceil(whole.length / 4),
        counted: true
      })
      assert.equal(await faults(), before + 1)
    }
  )

  it.each(cases)("%s, in a stream: the same", async (_, usage) => {
    const before = await faults()
    const delta = (content: string) =>
      `data: {"choices":[{"index":0,"delta":{"content":"${content}"}}],"usage":null}\n\n`
    upstream.script = (_, response) =>
      events(response, [
        delta("a"),
        delta("b"),
        `data: {"choices":[],"usage":${usage}}\n\n`,
        "data: [DONE]\n\n"
      ])
    const body = { ...chat, stream: true }
    await (await gateway.post("/v1/chat/completions", body)).text()
    const call = await newest()
    assert.deepEqual(call.usage, {
      inputTokens: Math.ceil(JSON.stringify(body).length / 4),
      outputTokens: 2,
      counted: true
    })
    assert.equal(await faults(), before + 1)
  })

  it("true figures are no fault", async () => {
    const before = await faults()
    const usage = { prompt_tokens: 3000, completion_tokens: 600, prompt_tokens_details: null }
    upstream.script = (_, response) => json(response, 200, { ...chatCompletion("gpt-4o"), usage })
    await (await gateway.post("/v1/chat/completions", chat)).text()
    assert.equal((await newest()).usage?.counted, false)
    assert.equal(await faults(), before)
  })
})
