import { assert, describe, it } from "vitest"
import { chatCompletion, mockOpenAi } from "../../support/mockOpenAi.ts"
import { events, json, upstreamOfTests } from "../../support/mockVendors.ts"
import { gatewayOfTests } from "../../support/passthroughGateway.ts"

/** Impossible figures are not used. docs/reference/passthrough.md#usage, ADR 0072. */

const upstream = await upstreamOfTests(mockOpenAi())
const gateway = await gatewayOfTests({
  OPENAI_API_KEY: "sk-vendor;name=main",
  OPENAI_BASE_URL: upstream.origin
})

const chat = { model: "gpt-4o", max_tokens: 600, messages: [{ role: "user", content: "Hi" }] }

const faults = async (): Promise<number> => {
  const text = await gateway.metrics()
  const line = /^gateway_upstream_usage_faults_total\{account="openai:main"\} (\d+)$/mu.exec(text)
  return Number(line?.[1] ?? 0)
}

const cases: ReadonlyArray<readonly [string, string]> = [
  ["a negative prompt", '{"prompt_tokens":-1000,"completion_tokens":5}'],
  ["a negative answer", '{"prompt_tokens":10,"completion_tokens":-5}'],
  ["a negative part", '{"prompt_tokens":10,"prompt_tokens_details":{"cached_tokens":-9}}'],
  ["a fraction", '{"prompt_tokens":10.5,"completion_tokens":5}'],
  ["a text", '{"prompt_tokens":"10","completion_tokens":5}'],
  ["more than a number can hold", '{"prompt_tokens":1e999,"completion_tokens":5}'],
  ["more than the model reads", '{"prompt_tokens":1000000000,"completion_tokens":5}'],
  ["more than the model writes", '{"prompt_tokens":10,"completion_tokens":1000000000}'],
  ["nothing at all", '{"prompt_tokens":0,"completion_tokens":0}']
]

describe("usage figures that cannot be true", () => {
  it.each(cases)(
    "are replaced by the gateway's own count, and the fault is counted: %s",
    async (_, usage) => {
      const before = await faults()
      const answer = JSON.stringify({ ...chatCompletion("gpt-4o"), usage: null })
      const whole = answer.replace('"usage":null', `"usage":${usage}`)
      upstream.script = (_, response) => {
        response.writeHead(200, { "content-type": "application/json" })
        response.end(whole)
      }
      await (await gateway.post("/v1/chat/completions", chat)).text()
      const call = await gateway.newest()
      assert.deepEqual(call.usage, {
        inputTokens: Math.ceil(JSON.stringify(chat).length / 4),
        outputTokens: Math.ceil(whole.length / 4),
        counted: true
      })
      assert.equal(await faults(), before + 1)
    }
  )

  it.each(cases)("are replaced in a stream too: %s", async (_, usage) => {
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
    const call = await gateway.newest()
    assert.deepEqual(call.usage, {
      inputTokens: Math.ceil(JSON.stringify(body).length / 4),
      outputTokens: 2,
      counted: true
    })
    assert.equal(await faults(), before + 1)
  })

  it("true figures are not counted as a fault", async () => {
    const before = await faults()
    const usage = { prompt_tokens: 3000, completion_tokens: 600, prompt_tokens_details: null }
    upstream.script = (_, response) => json(response, 200, { ...chatCompletion("gpt-4o"), usage })
    await (await gateway.post("/v1/chat/completions", chat)).text()
    assert.equal((await gateway.newest()).usage?.counted, false)
    assert.equal(await faults(), before)
  })
})
