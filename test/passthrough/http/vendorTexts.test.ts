import { assert, describe, it } from "vitest"
import { chatCompletion, mockOpenAi } from "../../support/mockOpenAi.ts"
import { json, upstreamOfTests } from "../../support/mockVendors.ts"
import { gatewayOfTests } from "../../support/passthroughGateway.ts"

/** No vendor's text reaches a client unfiltered. docs/reference/passthrough.md#errors, ADR 0074. */
const key = "sk-proj-AAAA1111vendorsecretopenaiA"

const upstream = await upstreamOfTests(mockOpenAi())
const gateway = await gatewayOfTests({ OPENAI_API_KEY: key, OPENAI_BASE_URL: upstream.origin })

const chat = { model: "gpt-4o", max_tokens: 60, messages: [{ role: "user", content: "Hi" }] }
const ask = async (body: object = chat) => {
  const answer = await gateway.post("/v1/chat/completions", body)
  return { status: answer.status, headers: answer.headers, text: await answer.text() }
}
describe("a vendor's refusal", () => {
  it("loses what only the operator may see, and keeps the rest", async () => {
    upstream.script = (_, response) =>
      json(
        response,
        400,
        {
          error: {
            message: `Rate limit for org-abc123DEF in proj_x9y8z7 with ${key} at http://10.0.0.7:8080/v1?key=abc, see https://platform.openai.com/docs. Limit 30000`,
            type: "invalid_request_error",
            param: "max_tokens",
            code: "bad",
            account_id: 1234567890,
            organization: "acme",
            details: [{ consumer: "projects/123456789", retry: 5 }]
          }
        },
        {
          location: "http://10.0.0.7/next",
          "www-authenticate": "Bearer realm=x",
          "x-echo": `Bearer ${key}`,
          "x-request-id": "req_1"
        }
      )
    const { headers, status, text } = await ask()
    assert.equal(status, 400)
    assert.deepEqual(JSON.parse(text), {
      error: {
        message: `Rate limit for [hidden] in [hidden] with ${"*".repeat(key.length)} at [hidden], see https://platform.openai.com/docs. Limit 30000`,
        type: "invalid_request_error",
        param: "max_tokens",
        code: "bad",
        account_id: "[hidden]",
        organization: "[hidden]",
        details: [{ consumer: "[hidden]", retry: 5 }]
      }
    })
    assert.isNull(headers.get("location"))
    assert.isNull(headers.get("www-authenticate"))
    assert.equal(headers.get("x-request-id"), "req_1")
    assert.notInclude(headers.get("x-echo") ?? "", "vendorsecret")
    assert.equal((await gateway.newest()).outcome, "released")
  })

  it("is relayed byte for byte when it has nothing to hide", async () => {
    const text = '{ "error":  {"message":"Unknown parameter: \\u0027x\\u0027", "code": null}}\n'
    upstream.script = (_, response) => {
      response.writeHead(400, { "content-type": "application/json; charset=utf-8" })
      response.end(text)
    }
    const answer = await ask()
    assert.equal(answer.text, text)
    assert.equal(answer.headers.get("content-type"), "application/json; charset=utf-8")
  })

  it.each([
    ["text/html; charset=UTF-8", "<!DOCTYPE html><script>alert(1)</script> 10.0.0.1"],
    ["image/svg+xml", "<svg onload='alert(1)'/>"],
    ["text/plain", "  <html>x</html>"],
    ["application/xhtml+xml", "<html/>"]
  ])("is not relayed as a page: %s", async (type, page) => {
    upstream.script = (_, response) => {
      response.writeHead(413, { "content-type": type, "retry-after": "7" })
      response.end(page)
    }
    const { headers, status, text } = await ask()
    assert.equal(status, 413)
    assert.equal(headers.get("content-type"), "application/json")
    assert.equal(headers.get("retry-after"), "7")
    assert.equal(
      JSON.parse(text).error.message,
      "The vendor responded with HTTP 413 and a page, which is not relayed"
    )
  })

  it("becomes the message of an error if it is plain text or large", async () => {
    const script = (body: string) => {
      upstream.script = (_, response) => {
        response.writeHead(422, { "content-type": "text/plain" })
        response.end(body)
      }
    }
    script("connect error: 10.1.2.3:443\u001b[31m\nforged")
    const { text } = await ask()
    assert.equal(JSON.parse(text).error.message, "connect error: [hidden] [31m forged")
    script(`{"error":{"message":"${"x ".repeat(40_000)}"}}`)
    const large = JSON.parse((await ask()).text)
    assert.equal(large.error.message.length, 500)
    script('{"a":'.repeat(10_000) + "1" + "}".repeat(10_000))
    assert.include((await ask()).text, "[hidden]")
  })

  it("is relayed as JSON if it is JSON with the type of a page", async () => {
    upstream.script = (_, response) => {
      response.writeHead(400, { "content-type": "text/html" })
      response.end('{"error":{"message":"<script>"}}')
    }
    const answer = await ask()
    assert.equal(answer.headers.get("content-type"), "application/json")
    assert.equal(JSON.parse(answer.text).error.message, "<script>")
  })
})

describe("a vendor's success", () => {
  it("loses the service's own key, and nothing else", async () => {
    const content = `your key is ${key}, yours is sk-proj-other, at 10.0.0.1 of org-abc`
    const whole = JSON.stringify(chatCompletion("gpt-4o", { content }))
    upstream.script = (_, response) => {
      response.writeHead(200, { "content-type": "application/json", "x-echo": key })
      response.write(whole.slice(0, whole.indexOf(key) + 9))
      setImmediate(() => response.end(whole.slice(whole.indexOf(key) + 9)))
    }
    const { headers, text } = await ask()
    assert.equal(text, whole.replace(key, "*".repeat(key.length)))
    assert.equal(headers.get("x-echo"), "*".repeat(key.length))
    assert.equal((await gateway.newest()).usage?.["counted"], false)
  })

  it("loses the key in a stream too, wherever it is split", async () => {
    const event = `data: {"choices":[{"index":0,"delta":{"content":"${key}"}}],"usage":null}\n\n`
    const last = 'data: {"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":3}}\n\n'
    for (const cut of [50, 55, 80]) {
      upstream.script = async (_, response) => {
        response.writeHead(200, { "content-type": "text/event-stream" })
        response.write(event.slice(0, cut))
        await new Promise((resolve) => setTimeout(resolve, 20))
        response.end(`${event.slice(cut)}${last}`)
      }
      const { text } = await ask({ ...chat, stream: true, stream_options: { include_usage: true } })
      assert.equal(text, `${event.replace(key, "*".repeat(key.length))}${last}`)
      assert.equal((await gateway.newest()).usage?.["inputTokens"], 9)
    }
  })

  it.each([
    ["in one piece", []],
    ["split before the error", [20]],
    ["split in the error", [40]],
    ["split in its name", [3]],
    ["in many pieces", [12, 14, 30, 45, 70]]
  ])(
    "loses what an error in the middle of a stream says about the account, %s",
    async (_, cuts) => {
      const said = `Rate limit for gpt-4o in organization org-abc123DEF: Limit 3`
      const delta = 'data: {"choices":[{"index":0,"delta":{"content":"org-abc123DEF"}}]}\n\n'
      const failure = `event: error\ndata: {"type":"error","error":{"type":"x","message":"${said}"}}\n\n`
      for (const include_usage of [true, false]) {
        upstream.script = async (_, response) => {
          response.writeHead(200, { "content-type": "text/event-stream" })
          response.write(delta)
          const ends = [...cuts, failure.length]
          for (const [index, end] of ends.entries()) {
            await new Promise((resolve) => setTimeout(resolve, 10))
            response.write(failure.slice(index === 0 ? 0 : ends[index - 1], end))
          }
          response.end()
        }
        const { text } = await ask({ ...chat, stream: true, stream_options: { include_usage } })
        const shown = failure.replace(/organization org-\w+/u, "organization [hidden]")
        assert.equal(text, `${delta}${shown}`)
        assert.equal((await gateway.newest()).outcome, "released")
      }
    }
  )

  it("is answered with 502 if it is a page, and nothing is charged", async () => {
    upstream.script = (_, response) => {
      response.writeHead(200, { "content-type": "text/html" })
      response.end("<html>Sign in to the network</html>")
    }
    const { status, text } = await ask()
    assert.equal(status, 502)
    assert.equal(JSON.parse(text).code, 5002)
    assert.notInclude(text, "Sign in")
    const call = await gateway.newest()
    assert.equal(call.outcome, "released")
    assert.equal(call.captured, 0n)
  })
})
