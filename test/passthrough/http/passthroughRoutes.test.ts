import { assert, describe, it } from "vitest"
import { chatEvents, mockOpenAi } from "../../support/mockOpenAi.ts"
import { events, json, upstreamOfTests } from "../../support/mockVendors.ts"
import { jsonOf, gatewayOfTests } from "../../support/passthroughGateway.ts"
import { until } from "../../support/until.ts"

const vendorKey = "sk-vendor-secret-0123456789"

const upstream = await upstreamOfTests(mockOpenAi())
const gateway = await gatewayOfTests({
  OPENAI_API_KEY: vendorKey,
  OPENAI_BASE_URL: `${upstream.origin}/v1`,
  UPSTREAM_TIMEOUT: "2 seconds"
})

const chat = {
  model: "gpt-4o",
  max_tokens: 600,
  messages: [{ role: "user", content: "Hi ".repeat(1000) }]
}
const last = () => upstream.seen.at(-1)!

describe("what is relayed", () => {
  it("the path after /vendors/{vendor} is called at the upstream, and the alias is the same route", async () => {
    for (const path of ["/vendors/openai/v1/chat/completions", "/v1/chat/completions"]) {
      const answer = await gateway.post(`${path}?a=1`, chat)
      assert.equal(answer.status, 200)
      assert.equal(last().url, "/v1/chat/completions?a=1")
    }
    const models = await fetch(`${gateway.origin}/v1/models`, {
      headers: { authorization: `Bearer ${gateway.key}` }
    })
    assert.equal(models.status, 200)
    assert.equal(last().url, "/v1/models")
    await gateway.settled()
  })

  it("HEAD is GET without its body", async () => {
    for (const path of ["/v1/models", "/vendors/openai/v1/models", "/v1/models/gpt-4o"]) {
      const headers = { authorization: `Bearer ${gateway.key}` }
      const whole = await fetch(`${gateway.origin}${path}`, { headers })
      const head = await fetch(`${gateway.origin}${path}`, { method: "HEAD", headers })
      const length = String((await whole.arrayBuffer()).byteLength)
      assert.deepEqual([head.status, head.headers.get("content-length")], [200, length], path)
      assert.equal(await head.text(), "")
    }
    const wrong = await fetch(`${gateway.origin}/v1/models`, { method: "PUT" })
    assert.deepEqual([wrong.status, wrong.headers.get("allow")], [405, "GET, HEAD"])
  })

  it("responses, embeddings and messages have aliases too, and other methods of them are 405", async () => {
    for (const [path, body] of [
      ["/v1/responses", { model: "gpt-4o", input: "Hi" }],
      ["/v1/embeddings", { model: "text-embedding-3-small", input: "Hi" }]
    ] as const) {
      await gateway.post(path, body)
      assert.equal(last().url, path)
      assert.equal(last().headers.authorization, `Bearer ${vendorKey}`)
    }
    await gateway.post("/v1/responses/input_tokens", { model: "openai/gpt-4o", input: "Hi" })
    assert.deepEqual(JSON.parse(last().body), { model: "gpt-4o", input: "Hi" })
    const before = upstream.seen.length
    for (const path of ["/v1/messages", "/v1/messages/count_tokens"]) {
      const body = { model: "claude-haiku-4-5", max_tokens: 9, messages: [] }
      const answer = await gateway.post(path, body)
      assert.equal(answer.status, 200, path)
      // Anthropic's account is the sandbox here
      assert.equal(answer.headers.get("x-service-sandbox"), "true", path)
      assert.include(await answer.text(), "input_tokens")
    }
    assert.equal(upstream.seen.length, before)
    for (const path of ["/v1/responses", "/v1/messages"]) {
      const wrong = await fetch(`${gateway.origin}${path}`)
      assert.equal(wrong.status, 405, path)
      assert.equal(wrong.headers.get("allow"), "POST")
    }
    await gateway.settled()
  })

  it("the body reaches the upstream byte for byte, and the response reaches the client", async () => {
    const body = ` { "model" : "gpt-4o","max_tokens":5, "seed": 12345678901234567890, "messages":[] }\n`
    const answer = await gateway.post("/v1/chat/completions", body)
    assert.equal(last().body, body)
    assert.equal((await jsonOf(answer)).choices[0]!.message.content, "Hello there")
    await gateway.settled()
  })

  it("a response is relayed byte for byte, whole and as a stream", async () => {
    const whole = ` { "choices" : [], "big":12345678901234567890,\n"usage":{"prompt_tokens":1}, "é":"\\u00e9" }\n`
    upstream.script = (_, response) => {
      response.writeHead(200, { "content-type": "application/json; charset=utf-8" })
      response.end(whole)
    }
    const answer = await gateway.post("/v1/chat/completions", chat)
    assert.equal(await answer.text(), whole)
    assert.equal(answer.headers.get("content-type"), "application/json; charset=utf-8")
    const stream = `: hello\r\n\r\nid: 1\nretry: 5\ndata: {"choices":[{"delta":{"content":"é"}}]}\n\ndata:[DONE]\n\n: no end`
    upstream.script = (_, response) => {
      response.writeHead(200, { "content-type": "text/event-stream; charset=utf-8" })
      // Cut in the middle of a character
      const bytes = Buffer.from(stream)
      const cut = bytes.indexOf(0xc3) + 1
      response.write(bytes.subarray(0, cut))
      setImmediate(() => response.end(bytes.subarray(cut)))
    }
    for (const include_usage of [true, false]) {
      const asked = { ...chat, stream: true, stream_options: { include_usage } }
      const streamed = await gateway.post("/v1/chat/completions", asked)
      assert.equal(await streamed.text(), stream)
    }
    await gateway.settled()
  })

  it("a 503 or 429 that does not say how long to wait gets a Retry-After", async () => {
    let began = 0
    for (const status of [503, 429]) {
      upstream.script = (_, response) => json(response, status, { error: { message: "busy" } })
      began = performance.now()
      const answer = await gateway.post("/v1/chat/completions", chat)
      assert.equal(answer.status, status)
      assert.equal(answer.headers.get("retry-after"), "1")
      assert.equal((await jsonOf(answer)).error.message, "busy")
    }
    await gateway.settled()
    // The pause of the account
    await until(() => performance.now() > began + 1100, { what: "a free account" })
  })

  it("faults in members that determine the cost are reported with their pointers", async () => {
    const answer = await gateway.post("/v1/chat/completions", { ...chat, stream: "yes", n: "2" })
    assert.equal(answer.status, 400)
    const { code, errors } = (await answer.json()) as {
      code: number
      errors: ReadonlyArray<{ pointer: string }>
    }
    assert.equal(code, 2001)
    assert.deepEqual(errors.map(({ pointer }) => pointer).sort(), ["#/n", "#/stream"])
  })

  it("the vendor's key is added; the client's credentials, cookies and hop-by-hop headers are removed", async () => {
    await gateway.post("/v1/chat/completions?key=abc&api%5Fkey=x", chat, {
      cookie: "session=1",
      "x-api-key": "client",
      "openai-organization": "client-org",
      "proxy-authorization": "Basic x",
      "x-forwarded-for": "10.0.0.1",
      te: "trailers",
      "x-custom": "kept"
    })
    const { headers, url } = last()
    assert.equal(headers.authorization, `Bearer ${vendorKey}`)
    assert.equal(url, "/v1/chat/completions")
    assert.equal(headers["x-custom"], "kept")
    for (const name of [
      "cookie",
      "x-api-key",
      "openai-organization",
      "proxy-authorization",
      "x-forwarded-for",
      "te",
      "accept-encoding"
    ]) {
      assert.isUndefined(headers[name], name)
    }
    assert.notInclude(JSON.stringify(headers), gateway.key)
    await gateway.settled()
  })

  it("status, rate headers and request id are relayed, with Traceparent and the cost; cookies and the account are not", async () => {
    const answer = await gateway.post("/v1/chat/completions", chat)
    assert.equal(answer.headers.get("x-ratelimit-remaining-requests"), "99")
    assert.equal(answer.headers.get("x-request-id"), "req_mock")
    assert.match(answer.headers.get("traceparent") ?? "", /^00-[0-9a-f]{32}-[0-9a-f]{16}-0\d$/)
    // 600 input at 250, 400 cached at 125, 500 output at 1000 credits a million
    assert.equal(answer.headers.get("x-service-cost"), "0.70")
    assert.match(answer.headers.get("x-service-call-id") ?? "", /^[0-9a-f-]{36}$/)
    assert.isNull(answer.headers.get("x-service-sandbox"))
    for (const name of ["set-cookie", "openai-organization", "x-hop"]) {
      assert.isNull(answer.headers.get(name), name)
    }
    await gateway.settled()
  })

  it("events are relayed one by one, as the upstream sends them", async () => {
    const gates = Array.from({ length: 8 }, () => Promise.withResolvers<void>())
    upstream.script = (_, response) =>
      events(response, chatEvents(["a", "b", "c"], true), (index) => gates[index]!.promise)
    const answer = await gateway.post("/v1/chat/completions", { ...chat, stream: true })
    assert.equal(answer.headers.get("content-type"), "text/event-stream")
    const reader = answer.body!.pipeThrough(new TextDecoderStream()).getReader()
    for (const [index, word] of ["a", "b", "c"].entries()) {
      const { value } = await reader.read()
      assert.include(value, `"content":"${word}"`)
      gates[index + 1]!.resolve()
    }
    for (const gate of gates) gate.resolve()
    let rest = ""
    for (let next = await reader.read(); !next.done; next = await reader.read()) rest += next.value
    assert.include(rest, "[DONE]")
    await gateway.settled()
  })

  it("the usage chunk is requested, and hidden when the client did not request it", async () => {
    const hidden = await gateway.post("/v1/chat/completions", { ...chat, stream: true })
    const text = await hidden.text()
    assert.isTrue(JSON.parse(last().body).stream_options.include_usage)
    assert.notInclude(text, "prompt_tokens")
    assert.include(text, "[DONE]")
    const asked = await gateway.post("/v1/chat/completions", {
      ...chat,
      stream: true,
      stream_options: { include_usage: true }
    })
    assert.include(await asked.text(), '"prompt_tokens":1000')
    await gateway.settled()
    const [first, second] = await gateway.calls()
    assert.equal(first!.captured, second!.captured)
    assert.equal(first!.captured, 700_000n)
  })
})

describe("what is refused", () => {
  it("manipulated paths reach no other route and no other host", async () => {
    const { connect } = await import("node:net")
    const targets = [
      "/vendors/openai/v1/chat/../files",
      "/vendors/openai/v1/%2e%2e/files",
      "/vendors/openai/v1/models/..%2ffiles",
      "/vendors/openai/v1/models/%252e%252e",
      "/vendors/openai/v1/models/a%2Fb",
      "/vendors/openai/v1/models/a%00",
      "/vendors/openai/v1/models/%zz",
      "/vendors/openai//v1/models",
      "/vendors/openai/v1/models/",
      "/vendors/openai/v1\\models",
      "/vendors/openai@evil.example/v1/models",
      "/vendors/http:%2f%2fevil.example/v1/models",
      "/vendors/openai/http://evil.example/v1/models",
      "/vendors/nobody/v1/models",
      "/vendors/openai/v1/fine_tuning/jobs",
      "/vendors/openai/v1/models/gpt-4o/../../files",
      "/v1/models/../files",
      "/v1/fine_tuning/jobs",
      "/vendors/openai/v1/models/x%0d%0aHost:%20evil",
      "http://evil.example/vendors/openai/v1/fine_tuning/jobs"
    ]
    for (const target of targets) {
      const status = await new Promise<string>((resolve, reject) => {
        const socket = connect(gateway.port, "127.0.0.1", () => {
          socket.write(
            `GET ${target} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${gateway.key}\r\nConnection: close\r\n\r\n`
          )
        })
        let text = ""
        socket.on("data", (chunk) => (text += chunk))
        socket.on("close", () => resolve(text.slice(9, 12)))
        socket.on("error", reject)
      })
      assert.include(["404", "400"], status, target)
      assert.equal(upstream.seen.length, 0, target)
    }
  })

  it("one request remains one: smuggled lengths and split headers are refused or not interpreted", async () => {
    const { connect } = await import("node:net")
    const auth = `Authorization: Bearer ${gateway.key}\r\nContent-Type: application/json\r\n`
    const body = JSON.stringify(chat)
    const requests = [
      `POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\n${auth}Content-Length: ${body.length}\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n${body}`,
      `POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\n${auth}Content-Length: 4\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
      `GET /v1/models HTTP/1.1\r\nHost: x\r\n${auth}X-Bad: a\rContent-Length: 5\r\n\r\n`
    ]
    for (const text of requests) {
      const answer = await new Promise<string>((resolve, reject) => {
        const socket = connect(gateway.port, "127.0.0.1", () => socket.end(text))
        let got = ""
        socket.on("data", (chunk) => (got += chunk))
        socket.on("close", () => resolve(got))
        socket.on("error", reject)
      })
      assert.match(answer, /^HTTP\/1\.1 400/)
      assert.equal(upstream.seen.length, 0)
    }
    await gateway
      .post("/v1/chat/completions", chat, {
        host: "evil.example",
        "x-original-host": "evil.example",
        connection: "x-custom",
        "x-custom": "dropped"
      })
      .catch(() => {})
    assert.isTrue(upstream.seen.every((it) => it.headers.host === new URL(upstream.origin).host))
    await gateway.settled()
  })

  it("a route that is not open is 2006, and another method of an open route is 2007 with Allow", async () => {
    const closed = await gateway.post("/vendors/openai/v1/fine_tuning/jobs", {})
    assert.equal(closed.status, 404)
    const problem = await jsonOf(closed)
    assert.equal(problem.code, 2006)
    assert.match(problem.detail, /POST \/vendors\/openai\/v1\/responses,.* CATALOG_FILE$/)
    const unknown = await jsonOf(gateway.post("/vendors/nobody/v1/fine_tuning/jobs", {}))
    assert.equal(unknown.code, 2006)
    assert.match(unknown.detail, /openai, anthropic, google.* CATALOG_FILE$/)
    for (const path of ["/v1/fine_tuning/jobs", "/v1/responses/resp_1/input_items"]) {
      const none = await jsonOf(gateway.post(path, {}))
      assert.equal(none.code, 2006, path)
      assert.match(none.detail, /\/v1\/responses, .*\/v1\/messages, .*\/vendors\/\{vendor\}/)
    }
    const wrong = await fetch(`${gateway.origin}/v1/chat/completions`)
    assert.equal(wrong.status, 405)
    assert.equal(wrong.headers.get("allow"), "POST")
    assert.equal((await jsonOf(wrong)).code, 2007)
  })

  it("a model without a price, a body that is not JSON and a request without a key are refused", async () => {
    const unpriced = await gateway.post("/v1/chat/completions", { ...chat, model: "gpt-unknown" })
    assert.equal(unpriced.status, 404)
    const problem = await jsonOf(unpriced)
    assert.equal(problem.code, 2006)
    assert.equal(problem.error.message, problem.detail)
    assert.equal((await jsonOf(gateway.post("/v1/chat/completions", "{"))).code, 2002)
    const text = await gateway.post("/v1/chat/completions", chat, { "content-type": "text/plain" })
    assert.equal(text.status, 415)
    const anonymous = await gateway.post("/v1/chat/completions", chat, { authorization: "" })
    assert.equal(anonymous.status, 401)
    assert.equal(upstream.seen.length, 0)
  })
})

describe("faults of the upstream", () => {
  it("an upstream that does not respond is 5004, one that breaks off is 5002, and each is called once", async () => {
    upstream.script = () => {}
    const silent = await gateway.post("/v1/chat/completions", chat)
    assert.equal(silent.status, 504)
    assert.equal((await jsonOf(silent)).code, 5004)
    upstream.script = (_, response) => void response.destroy()
    const broken = await gateway.post("/v1/chat/completions", chat)
    assert.equal(broken.status, 502)
    assert.equal((await jsonOf(broken)).code, 5002)
    assert.equal(upstream.seen.length, 2)
    await gateway.settled()
  })

  it("an upstream that stops in the middle of a stream is aborted, and its call is not charged", async () => {
    upstream.script = (_, response) => {
      response.writeHead(200, { "content-type": "text/event-stream" })
      response.write(chatEvents(["a"], false)[0])
    }
    const answer = await gateway.post("/v1/chat/completions", { ...chat, stream: true })
    assert.equal(answer.status, 200)
    const reader = answer.body!.getReader()
    assert.isFalse((await reader.read()).done)
    // The client sees that the response is incomplete
    await reader.read().then(
      () => assert.fail("the stream has ended as if it were whole"),
      () => {}
    )
    await until(() => last().aborted !== undefined, { what: "the upstream is aborted" })
    await gateway.settled()
    assert.equal((await gateway.calls())[0]!.outcome, "released")
    assert.equal(upstream.seen.length, 1)
  })

  it("a refusal of the upstream is relayed unchanged and costs nothing", async () => {
    const before = (await gateway.settled()).settled
    const refusal = { error: { message: "no", type: "invalid_request_error", code: "bad" } }
    for (const status of [400, 404, 500]) {
      upstream.script = (_, response) => json(response, status, refusal)
      const answer = await gateway.post("/v1/chat/completions", chat)
      assert.equal(answer.status, status)
      assert.deepEqual((await jsonOf(answer)) as unknown, refusal)
      assert.equal(answer.headers.get("x-service-cost"), "0.00")
      const { captured, httpStatus, outcome } = await gateway.newest()
      assert.deepEqual([captured, httpStatus, outcome], [0n, status, "released"])
    }
    assert.equal((await gateway.settled()).settled, before)
  })

  it("a refusal of the service's own key is neither shown to the client nor logged", async () => {
    upstream.script = (_, response) =>
      json(response, 401, { error: { message: `Incorrect API key provided: ${vendorKey}` } })
    const answer = await gateway.post("/v1/chat/completions", chat)
    const text = await answer.text()
    assert.equal(answer.status, 503)
    assert.notInclude(text, "vendor-secret")
    assert.isTrue(gateway.logs.some((line) => line.includes("refused the service's own key")))
    assert.notInclude(gateway.logs.join("\n"), "vendor-secret")
    assert.notInclude(gateway.logs.join("\n"), gateway.key)
    assert.equal(await gateway.drift(), 0)
  })
})
