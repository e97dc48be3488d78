import { assert, describe, it } from "vitest"
import { json, mockVendor, upstreamOfTests } from "../../support/mockVendors.ts"
import { jsonOf, gatewayOfTests } from "../../support/passthroughGateway.ts"

/** docs/reference/wallet.md#speech-transcription-and-reranking */

const vendor = await upstreamOfTests(mockVendor(() => {}))
const gateway = await gatewayOfTests({
  COHERE_API_KEY: "sk-vendor-cohere",
  COHERE_BASE_URL: `${vendor.origin}/v2`,
  JINA_API_KEY: "sk-vendor-jina",
  JINA_BASE_URL: `${vendor.origin}/v1`
})

const query = "Which one is about light?"
const documents = ["A lamp gives light.", "A stone is heavy."]
const results = [{ index: 0, relevance_score: 0.9 }]

describe("reranking", () => {
  it("is charged by the searches that Cohere reports", async () => {
    vendor.script = (_, response) =>
      json(response, 200, { id: "r", results, meta: { billed_units: { search_units: 2 } } })
    const many = Array.from({ length: 150 }, () => documents[0])
    const response = await gateway.post("/vendors/cohere/v2/rerank", {
      model: "rerank-v3.5",
      query,
      documents: many
    })
    assert.equal(response.status, 200)
    assert.deepInclude(await response.json(), { results })
    assert.equal(vendor.seen[0]?.url, "/v2/rerank")
    const call = await gateway.newest()
    assert.equal(call.captured, 400_000n)
    assert.isTrue(call.held >= call.captured)
    assert.deepInclude(call.usage, { searches: 2, counted: false })
    assert.equal(call.vendor, "cohere")
  })

  it("is charged a search for each hundred documents without figures", async () => {
    vendor.script = (_, response) => json(response, 200, { results })
    const many = Array.from({ length: 101 }, () => documents[0])
    await gateway.post("/vendors/cohere/v2/rerank", {
      model: "rerank-v4.0-pro",
      query,
      documents: many
    })
    const call = await gateway.newest()
    assert.equal(call.captured, 500_000n)
    assert.deepInclude(call.usage, { searches: 2, counted: true })
  })

  it("is charged by tokens for Jina, and held for the query with each document", async () => {
    vendor.script = (_, response) =>
      json(response, 200, { object: "list", results, usage: { total_tokens: 60 } })
    const response = await gateway.post("/v1/rerank", {
      model: "jina-reranker-v3",
      query,
      documents
    })
    assert.equal(response.status, 200)
    assert.equal(vendor.seen[0]?.headers.authorization, "Bearer sk-vendor-jina")
    const call = await gateway.newest()
    // 60 tokens at 5 credits a million
    assert.equal(call.captured, 300n)
    const bytes = Buffer.byteLength(JSON.stringify({ model: "jina-reranker-v3", query, documents }))
    assert.equal(call.held, BigInt(bytes + 2 * query.length) * 5n)
    assert.equal(call.usage?.["inputTokens"], 60)
  })

  it("goes from /v1/rerank to Cohere's own path for a model of Cohere", async () => {
    vendor.script = (_, response) =>
      json(response, 200, { results, meta: { billed_units: { search_units: 1 } } })
    const response = await gateway.post("/v1/rerank", {
      model: "cohere/rerank-v3.5",
      query,
      documents
    })
    assert.equal(response.status, 200)
    assert.equal(vendor.seen[0]?.url, "/v2/rerank")
    assert.equal(JSON.parse(vendor.seen[0]?.body ?? "").model, "rerank-v3.5")
    assert.equal((await gateway.newest()).captured, 200_000n)
  })

  it("is refused without documents, which determine the price", async () => {
    const response = await gateway.post("/v1/rerank", { model: "jina-reranker-v3", query })
    assert.deepInclude(await jsonOf(response), {
      code: 2001,
      errors: [{ pointer: "#/documents", detail: "Expected a list of documents" }]
    })
  })
})
