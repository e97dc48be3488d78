import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { mockOpenAi, openAiScript } from "../../support/mockOpenAi.ts"
import { json } from "../../support/mockVendors.ts"
import type { MockVendor } from "../../support/mockVendors.ts"
import { startGateway } from "../../support/passthroughGateway.ts"
import type { TestGateway } from "../../support/passthroughGateway.ts"

const path = "/v1/chat/completions"
const chat = (model: string) => ({
  model,
  max_tokens: 600,
  messages: [{ role: "user", content: "Hi" }]
})

/** docs/reference/vendors.md#error-classes */
describe("a language model that the vendor says is gone", () => {
  let upstream: MockVendor
  let gateway: TestGateway
  beforeAll(async () => {
    upstream = await mockOpenAi()
    gateway = await startGateway({
      OPENAI_API_KEY: `sk-secret-aaaa;name=a;base=${upstream.origin}/v1`
    })
  })
  afterAll(async () => {
    await gateway.stop()
    await upstream.close()
  })

  for (const [status, code] of [
    [404, "model_not_found"],
    [400, "model_deprecated"],
    [410, "model_not_found"]
  ] as const) {
    it(`its ${status} is relayed, and opens no circuit for other models`, async () => {
      upstream.script = (_, response) =>
        json(response, status, { error: { message: "The model is gone", code } })
      for (let i = 0; i < 8; i += 1) {
        assert.equal((await gateway.post(path, chat("gpt-4o"))).status, status)
      }
      upstream.script = openAiScript
      assert.equal((await gateway.post(path, chat("gpt-4o-mini"))).status, 200)
      const metrics = await gateway.metrics()
      assert.notMatch(metrics, /gateway_account_paused_seconds\{account="openai:a"\} [1-9]/u)
    })
  }
})
