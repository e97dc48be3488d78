import { writeFileSync } from "node:fs"
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { catalogFile, triedOn } from "../../support/aliases.ts"
import { adminToken } from "../../support/gateway.ts"
import { mockOpenAi } from "../../support/mockOpenAi.ts"
import type { MockVendor } from "../../support/mockVendors.ts"
import { startGateway } from "../../support/passthroughGateway.ts"
import type { TestGateway } from "../../support/passthroughGateway.ts"

/** docs/reference/http.md#sandbox-header, where some vendors have a key and others have none. */

const name = "x-service-sandbox"

describe("the sandbox header after a reload of the catalog", () => {
  /** Everything sold from the vendor with a key. */
  const remove = [
    "text-to-video-spark",
    "keyframe-to-video-plus",
    "image-edit",
    "text-to-image-max",
    "image-edit-max",
    "text-to-image-preview",
    "image-to-video-spark",
    "video-edit-plus"
  ]
  const file = catalogFile({ remove })
  let gateway: TestGateway
  beforeAll(async () => {
    gateway = await startGateway({ DASHSCOPE_API_KEY: "sk-vendor", CATALOG_FILE: file })
  })
  afterAll(() => gateway.stop())

  const reload = async (content: object) => {
    writeFileSync(file, JSON.stringify(content))
    const response = await fetch(`${gateway.origin}/manage/v1/catalog/reload`, {
      method: "POST",
      headers: { authorization: `Bearer ${adminToken}` }
    })
    assert.equal(response.status, 200, await response.text())
  }

  /**
   * The mode that the service reports, and the header of that response, of a live vendor's response and of another
   * vendor's.
   */
  const modes = async () => {
    const ask = (path: string) => fetch(gateway.origin + path)
    const service = await ask("/manage/v1/service")
    const live = await ask("/vendors/alibaba/v1/text-to-image-max/generation/nothing")
    const simulated = await ask("/vendors/openai/v1/nothing")
    const { sandbox } = (await service.json()) as { sandbox: boolean }
    return [sandbox, ...[service, live, simulated].map(({ headers }) => headers.get(name))]
  }

  it("follows the adopted catalog", async () => {
    const allSimulated = [true, "true", "true", "true"]
    assert.deepEqual(await modes(), allSimulated)
    await reload({})
    assert.deepEqual(await modes(), [false, null, null, "true"])
    await reload({ remove })
    assert.deepEqual(await modes(), allSimulated)
  })
})

describe("the sandbox header of a route whose vendor has no key", () => {
  const alias = {
    alias: "mixed",
    vendor: "openai",
    to: [{ model: "openai/gpt-4o" }, { model: "tried/chat-1" }]
  }
  let upstream: MockVendor
  let gateway: TestGateway
  beforeAll(async () => {
    upstream = await mockOpenAi()
    gateway = await startGateway({
      ANTHROPIC_API_KEY: "sk-vendor",
      ANTHROPIC_BASE_URL: upstream.origin,
      CATALOG_FILE: catalogFile({ ...triedOn("anthropic"), aliases: [alias] })
    })
  })
  afterAll(async () => {
    await gateway.stop()
    await upstream.close()
  })
  const chat = { max_tokens: 9, messages: [{ role: "user", content: "Hi" }] }

  it("is that of the model that served the call of an alias", async () => {
    for (const [model, sandbox] of [
      ["mixed", null],
      ["gpt-4o", "true"],
      ["nothing", "true"]
    ] as const) {
      const response = await gateway.post("/v1/chat/completions", { ...chat, model })
      await response.arrayBuffer()
      assert.equal(response.status, model === "nothing" ? 404 : 200, model)
      assert.equal(response.headers.get(name), sandbox, model)
    }
    assert.lengthOf(upstream.seen, 1)
  })
})
