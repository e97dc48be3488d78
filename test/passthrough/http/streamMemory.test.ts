import { Effect } from "effect"
import { createServer, request } from "node:http"
import type { ClientRequest, Server } from "node:http"
import type { AddressInfo } from "node:net"
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { keepsLessThan, kept, megabyte } from "../../support/heap.ts"
import { startGateway } from "../../support/passthroughGateway.ts"
import type { TestGateway } from "../../support/passthroughGateway.ts"

const streams = 12
const bodyBytes = 3 * megabyte
const chunk = { choices: [{ index: 0, delta: { content: "a" } }] }

let upstream: Server
let gateway: TestGateway

/** Discards the body and begins an endless stream. */
const startUpstream = () =>
  new Promise<Server>((resolve) => {
    const server = createServer((received, response) => {
      received.resume()
      received.on("end", () => {
        response.writeHead(200, { "content-type": "text/event-stream" })
        response.write(`data: ${JSON.stringify(chunk)}\n\n`)
      })
    })
    server.listen(0, "127.0.0.1", () => resolve(server))
  })

beforeAll(async () => {
  upstream = await startUpstream()
  const { port } = upstream.address() as AddressInfo
  const env = { OPENAI_API_KEY: "sk-vendor", OPENAI_BASE_URL: `http://127.0.0.1:${port}` }
  gateway = await startGateway(env, 1_000_000n)
})
afterAll(async () => {
  upstream.closeAllConnections()
  upstream.close()
  await gateway.stop()
})

// A single buffer, because a client keeps what it sends until the response
const chatOf = (bytes: number) =>
  Buffer.from(
    JSON.stringify({
      model: "gpt-4o",
      max_tokens: 5,
      stream: true,
      messages: [{ role: "user", content: "a".repeat(bytes) }]
    })
  )

const begun = (body: Buffer) =>
  new Promise<ClientRequest>((resolve, reject) => {
    const sent = request(
      {
        port: gateway.port,
        path: "/v1/chat/completions",
        method: "POST",
        agent: false,
        headers: {
          authorization: `Bearer ${gateway.key}`,
          "content-type": "application/json",
          "content-length": body.length
        }
      },
      (response) => {
        if (response.statusCode !== 200) reject(new Error(`status ${response.statusCode}`))
        response.on("error", () => {})
        response.once("data", () => resolve(sent))
      }
    )
    sent.on("error", reject)
    sent.end(body)
  })

describe("a stream that is relayed", () => {
  it.each([
    ["a large one", bodyBytes, streams],
    ["a small one", megabyte - 1000, 3 * streams]
  ])(
    "keeps no body of its request in memory: %s",
    async (_, bytes, count) => {
      const body = chatOf(bytes)
      const open = [await begun(body)]
      const before = kept()
      for (let n = 0; n < count; n += 1) open.push(await begun(body))
      await Effect.runPromise(keepsLessThan((count * bytes) / 4, before)).finally(() => {
        for (const sent of open) {
          sent.on("error", () => {})
          sent.destroy()
        }
      })
      await gateway.settled()
      assert.strictEqual(await gateway.drift(), 0)
    },
    120_000
  )
})
