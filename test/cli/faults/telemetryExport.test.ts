import { createServer } from "node:http"
import { assert, describe, it } from "vitest"
import { GatewayProcess } from "../../support/gatewayProcess.ts"
import { listen, stop } from "../../support/localServer.ts"

/** docs/reference/configuration.md#telemetry; the response names its trace: docs/reference/http.md#trace. */

interface Span {
  readonly traceId: string
  readonly spanId: string
  readonly parentSpanId?: string
  readonly name: string
}

/** A collector that stores what it receives, by path. */
const startCollector = async () => {
  const bodies: Array<{ readonly path: string; readonly text: string }> = []
  const server = createServer((request, response) => {
    const chunks: Array<Buffer> = []
    request.on("data", (chunk: Buffer) => chunks.push(chunk))
    request.on("end", () => {
      bodies.push({ path: request.url ?? "", text: Buffer.concat(chunks).toString() })
      response.writeHead(200, { "content-type": "application/json" }).end("{}")
    })
  })
  const port = await listen(server)
  return {
    url: `http://127.0.0.1:${port}`,
    bodies,
    spans: (): ReadonlyArray<Span> =>
      bodies
        .filter(({ path }) => path === "/v1/traces")
        .flatMap(({ text }) => JSON.parse(text).resourceSpans)
        .flatMap(({ scopeSpans }) => scopeSpans)
        .flatMap(({ spans }) => spans),
    close: () => stop(server)
  }
}

describe("OTEL_EXPORTER_OTLP_ENDPOINT", () => {
  it("exports a request as a span of the trace that its response names, without keys", async () => {
    const collector = await startCollector()
    const gateway = await GatewayProcess.start({
      env: { OTEL_EXPORTER_OTLP_ENDPOINT: collector.url, SERVICE_NAME: "Example" }
    })
    try {
      const secret = `sk-${"Z".repeat(46)}`
      const chat = (key: string, headers: Record<string, string> = {}, query = "") =>
        fetch(`${gateway.url}/v1/chat/completions${query}`, {
          method: "POST",
          headers: {
            authorization: `Bearer ${key}`,
            "content-type": "application/json",
            ...headers
          },
          body: JSON.stringify({
            model: "gpt-4o-mini",
            max_tokens: 8,
            messages: [{ role: "user", content: "hello" }]
          })
        })
      const key = await gateway.key()
      const begun = await chat(key)
      assert.strictEqual(begun.status, 200)
      await begun.arrayBuffer()
      const parent = "0123456789abcdef0123456789abcdef"
      const continued = await chat(key, { traceparent: `00-${parent}-0123456789abcdef-01` })
      await continued.arrayBuffer()
      const refused = await chat(secret, { "x-goog-api-key": secret }, `?key=${secret}`)
      assert.notStrictEqual(refused.status, 200)
      await refused.arrayBuffer()
      await gateway.kill("SIGTERM")
      assert.strictEqual(await gateway.ended, 0)

      const spans = collector.spans()
      for (const answer of [begun, continued, refused]) {
        const [, traceId, spanId] = answer.headers.get("traceparent")?.split("-") ?? []
        const span = spans.find((it) => it.spanId === spanId)
        assert.strictEqual(span?.traceId, traceId)
      }
      assert.include(continued.headers.get("traceparent"), parent)
      assert.strictEqual(
        spans.find(({ parentSpanId }) => parentSpanId === "0123456789abcdef")?.traceId,
        parent
      )
      const paths = new Set(collector.bodies.map(({ path }) => path))
      assert.sameMembers([...paths], ["/v1/logs", "/v1/metrics", "/v1/traces"])
      const all = collector.bodies.map(({ text }) => text).join("\n")
      assert.include(all, "Example")
      assert.notMatch(all, /sk-[0-9A-Za-z]{46}/u)
    } finally {
      await gateway.close()
      collector.close()
    }
  }, 180_000)
})
