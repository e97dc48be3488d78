import { createHash } from "node:crypto"
import { request } from "node:http"
import type { IncomingMessage } from "node:http"
import { assert, beforeEach, describe, it } from "vitest"
import { mockOpenAi } from "../../support/mockOpenAi.ts"
import { upstreamOfTests } from "../../support/mockVendors.ts"
import { gatewayOfTests } from "../../support/passthroughGateway.ts"
import { until } from "../../support/until.ts"

/** docs/reference/passthrough.md#large-responses */
const upstream = await upstreamOfTests(mockOpenAi())
const gateway = await gatewayOfTests({
  OPENAI_API_KEY: "sk-vendor-secret",
  OPENAI_BASE_URL: upstream.origin
})

const megabyte = 1024 * 1024
const usage = { prompt_tokens: 1000, total_tokens: 1000 }
const body = { model: "text-embedding-3-large", input: "a".repeat(2000) }
/** 1,000 tokens at 0.013 credits each thousand. */
const cost = 13_000n

/** Embeddings of about this many bytes. */
const embeddingsOf = (bytes: number): string => {
  const vector = Array.from({ length: 1000 }, (_, index) => index / 7)
  const text = JSON.stringify({ object: "embedding", index: 0, embedding: vector })
  const data = Array.from({ length: Math.ceil(bytes / text.length) }, () => text)
  return `{"object":"list","data":[${data.join(",")}],"model":"${body.model}","usage":${JSON.stringify(usage)}}`
}

/** The bytes that the vendor could send. */
let sent: () => number = () => 0

const respondWith = (text: string) => {
  upstream.script = (_, response) => {
    const { socket } = response
    const written = () => (socket?.bytesWritten ?? 0) - (socket?.writableLength ?? 0)
    // Of this response, because the connection may have carried others
    const before = written()
    sent = () => written() - before
    response.writeHead(200, { "content-type": "application/json", "x-request-id": "req_1" })
    response.end(text)
  }
}
beforeEach(() => {
  upstream.script = () => {}
})

/** A response whose body is not read yet. */
const begun = (path = "/v1/embeddings") =>
  new Promise<IncomingMessage>((resolve, reject) => {
    const sent = request(
      {
        port: gateway.port,
        path,
        method: "POST",
        agent: false,
        headers: { authorization: `Bearer ${gateway.key}`, "content-type": "application/json" }
      },
      resolve
    )
    sent.on("error", reject)
    sent.end(JSON.stringify(body))
  })

/** The vendor cannot send everything before the client reads. */
const assertWaits = async (response: IncomingMessage, text: string) => {
  let before = -1
  await until(() => {
    const isPaused = sent() === before
    before = sent()
    return isPaused
  })
  // The buffers of four sockets, of the system and of the gateway
  assert.isBelow(sent(), 20 * megabyte)
  let bytes = 0
  for await (const chunk of response) bytes += (chunk as Buffer).length
  assert.strictEqual(bytes, text.length)
}

const receipt = async () => {
  await gateway.settled()
  assert.equal(await gateway.drift(), 0)
  const [call] = await gateway.calls()
  return call!
}

describe("a large response", () => {
  it("arrives unchanged and costs what the vendor's figures say", async () => {
    const text = embeddingsOf(3 * megabyte)
    respondWith(text)
    const response = await gateway.post("/v1/embeddings", body)
    const digest = (bytes: string) => createHash("sha256").update(bytes).digest("hex")
    assert.strictEqual(digest(await response.text()), digest(text))
    assert.strictEqual(response.status, 200)
    assert.strictEqual(response.headers.get("content-type"), "application/json")
    assert.isNull(response.headers.get("x-service-cost"))
    const call = await receipt()
    assert.equal(call.captured, cost)
    assert.deepInclude(call, { outcome: "settled", httpStatus: 200 })
    assert.deepInclude(call.usage, { inputTokens: 1000, counted: false })
  })

  it("contains asterisks instead of the vendor's key, even if a chunk ends within the key", async () => {
    const text = JSON.stringify({ data: "sk-vendor-secret".repeat(20_000), usage })
    respondWith(text)
    const response = await gateway.post("/v1/embeddings", body)
    assert.strictEqual(await response.text(), text.replaceAll("sk-vendor-secret", "*".repeat(16)))
  })

  it("waits at the vendor while its client does not read, and is complete once it does", async () => {
    const text = embeddingsOf(30 * megabyte)
    respondWith(text)
    await assertWaits(await begun(), text)
    assert.equal((await receipt()).captured, cost)
  })

  it("waits in the same way for a free call, and has no receipt", async () => {
    const text = embeddingsOf(30 * megabyte)
    respondWith(text)
    const before = (await gateway.calls()).length
    const response = await begun("/v1/moderations")
    assert.strictEqual(response.headers["content-type"], "application/json")
    assert.isUndefined(response.headers["x-service-call-id"])
    await assertWaits(response, text)
    await gateway.settled()
    assert.lengthOf(await gateway.calls(), before)
  })

  it("contains asterisks instead of the vendor's key for a free call", async () => {
    const text = JSON.stringify({ data: "sk-vendor-secret".repeat(20_000) })
    respondWith(text)
    const response = await gateway.post("/v1/moderations", body)
    assert.strictEqual(await response.text(), text.replaceAll("sk-vendor-secret", "*".repeat(16)))
  })

  it("breaks the client's connection if it breaks off during a free call", async () => {
    upstream.script = (_, response) => {
      response.writeHead(200, { "content-type": "application/json" })
      response.write(embeddingsOf(megabyte), () => response.destroy())
    }
    const response = await gateway.post("/v1/moderations", body)
    assert.strictEqual(response.status, 200)
    const broken = await response.text().then(
      () => false,
      () => true
    )
    assert.isTrue(broken)
  })

  it("is closed at the vendor when the client of a free call leaves", async () => {
    upstream.script = (_, response) => {
      response.writeHead(200, { "content-type": "application/json" })
      response.write(embeddingsOf(megabyte))
    }
    const response = await begun("/v1/moderations")
    response.once("data", () => response.destroy())
    await until(() => upstream.seen.at(-1)?.aborted !== undefined)
  })

  it("is charged by the vendor's figures if they arrive after its client has left", async () => {
    respondWith(embeddingsOf(2 * megabyte))
    const response = await begun()
    response.once("data", () => response.destroy())
    const call = await receipt()
    assert.equal(call.captured, cost)
    assert.deepInclude(call.usage, { counted: false })
  })

  it("costs nothing if it breaks off, and the client's connection breaks too", async () => {
    upstream.script = (_, response) => {
      response.writeHead(200, { "content-type": "application/json" })
      response.write(embeddingsOf(megabyte).slice(0, -100), () => response.destroy())
    }
    const response = await gateway.post("/v1/embeddings", body)
    const broken = await response.text().then(
      () => false,
      () => true
    )
    assert.isTrue(broken)
    assert.equal((await receipt()).captured, 0n)
  })
})
