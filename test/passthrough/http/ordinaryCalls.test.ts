import { Effect } from "effect"
import { writeFileSync } from "node:fs"
import { request } from "node:http"
import { connect } from "node:net"
import { join } from "node:path"
import { assert, describe, it } from "vitest"
import { ApiKeys } from "../../../src/users/ApiKeys.ts"
import { digestOf } from "../../../src/users/KeyText.ts"
import { makeKey } from "../../support/callers.ts"
import { chatCompletion, chatEvents, mockOpenAi, openAiScript } from "../../support/mockOpenAi.ts"
import { events, json, upstreamOfTests } from "../../support/mockVendors.ts"
import type { MockVendor } from "../../support/mockVendors.ts"
import { gatewayOfTests, startGateway } from "../../support/passthroughGateway.ts"
import type { TestGateway } from "../../support/passthroughGateway.ts"
import { temporaryFolder } from "../../support/temporaryFolder.ts"
import { until } from "../../support/until.ts"

/** ADR 0113: calls of every kind take one path, whatever their body, key and response. */
const upstream = await upstreamOfTests(mockOpenAi())
const file = join(temporaryFolder("ordinary-calls"), "catalog.json")
/** Its path is also that of a task. */
const edit = {
  vendor: "openai",
  provider: "openai",
  method: "POST",
  path: "/v1/{model}/edit",
  meter: { per: "call", amount: "1.00" }
}
writeFileSync(file, JSON.stringify({ routes: [edit] }))
const env = {
  OPENAI_API_KEY: "sk-vendor",
  OPENAI_BASE_URL: `${upstream.origin}/v1`,
  CATALOG_FILE: file
}
const gateway = await gatewayOfTests(env)

const path = "/v1/chat/completions"
const chat = { model: "gpt-4o", max_tokens: 600, messages: [] }
// The first call looks up its key
await gateway.post(path, chat)
const traceparent = "00-0123456789abcdef0123456789abcdef-0123456789abcdef-01"

const refusesConnections = async ({ origin }: TestGateway) => {
  const refused = () =>
    fetch(origin).then(
      () => false,
      () => true
    )
  while (!(await refused())) await new Promise((resolve) => setImmediate(resolve))
}

interface FullResponse {
  readonly status: number
  readonly headers: Record<string, unknown>
  readonly body: string
}

/** With a length, or chunked: a body without a length is read as a large one. */
const post = (
  gateway: TestGateway,
  body: unknown,
  chunked: boolean,
  headers: Record<string, string> = {}
) =>
  new Promise<FullResponse>((resolve, reject) => {
    const text = typeof body === "string" ? body : JSON.stringify(body)
    const sent = request(
      `${gateway.origin}${path}`,
      {
        method: "POST",
        agent: false,
        headers: {
          authorization: `Bearer ${gateway.key}`,
          "content-type": "application/json",
          traceparent,
          ...(chunked
            ? { "transfer-encoding": "chunked" }
            : { "content-length": Buffer.byteLength(text) }),
          ...headers
        }
      },
      (answer) => {
        let received = ""
        answer.setEncoding("utf8")
        answer.on("data", (chunk: string) => (received += chunk))
        answer.on("end", () =>
          resolve({
            status: answer.statusCode ?? 0,
            headers: { ...answer.headers },
            body: received
          })
        )
        answer.on("error", reject)
      }
    )
    sent.on("error", reject)
    sent.end(text)
  })

/** A request as the bytes of a connection. */
const piece = ({ key }: TestGateway, user: string) => {
  const body = JSON.stringify({ ...chat, user })
  return `POST ${path} HTTP/1.1\r\nhost: a\r\nauthorization: Bearer ${key}\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`
}

/** Without the values that differ between calls. */
const comparable = ({ headers, ...members }: FullResponse) => {
  const { "x-service-call-id": call, traceparent: trace, date, ...rest } = headers
  return {
    ...members,
    headers: { ...rest, call: typeof call, trace: String(trace).slice(0, 36), date: typeof date }
  }
}

describe("a call", () => {
  it("is served without the routes, with and without a length", async () => {
    const before = gateway.routed()
    const ordinary = await post(gateway, chat, false)
    const chunked = await post(gateway, chat, true)
    assert.equal(gateway.routed(), before)
    assert.deepEqual(comparable(ordinary), comparable(chunked))
    assert.equal(ordinary.status, 200)
    assert.equal(String(ordinary.headers["traceparent"]).slice(0, 36), traceparent.slice(0, 36))
    assert.deepEqual(upstream.seen[0], upstream.seen[1])
    await gateway.settled()
    const [second, first] = await gateway.calls()
    assert.equal(second?.id, chunked.headers["x-service-call-id"])
    assert.equal(first?.id, ordinary.headers["x-service-call-id"])
    assert.deepEqual(first?.captured, second?.captured)
  })

  const scripts = {
    "a response without a type": (_: unknown, response) => {
      response.writeHead(200).end(JSON.stringify(chatCompletion("gpt-4o")))
    },
    "an empty response": (_: unknown, response) => void response.writeHead(204).end(),
    "an odd header": (_: unknown, response) => {
      response.socket?.end(
        "HTTP/1.1 200 OK\r\ncontent-length: 2\r\nx-odd: \u20ac\r\nconnection: close\r\n\r\n{}"
      )
    },
    "a refusal": (_: unknown, response) => json(response, 400, { error: { message: "no" } }),
    "a failure": (_: unknown, response) => json(response, 500, { error: { message: "no" } }),
    "a broken connection": (_: unknown, response) => void response.socket?.destroy(),
    "a stream": (_: unknown, response) => events(response, chatEvents(["a", "b"], true))
  } satisfies Record<string, MockVendor["script"]>

  for (const [what, script] of Object.entries(scripts)) {
    it(`gets the same response with a length and chunked: ${what}`, async () => {
      upstream.script = script
      const ordinary = await post(gateway, chat, false)
      const chunked = await post(gateway, chat, true)
      assert.deepEqual(comparable(ordinary), comparable(chunked))
      await gateway.settled()
      const [second, first] = await gateway.calls()
      assert.deepEqual(
        [first?.outcome, first?.captured, first?.httpStatus],
        [second?.outcome, second?.captured, second?.httpStatus]
      )
    })
  }

  const faults: Record<string, readonly [body: unknown, headers: Record<string, string>]> = {
    "a body that is not JSON": ["{", {}],
    "a body with faults": [{ model: 1, stream: "yes" }, {}],
    "an unknown model": [{ ...chat, model: "nobody" }, {}],
    "more than the balance": [{ ...chat, max_tokens: 4e9, n: 128, model: "o1-pro" }, {}],
    "another type": [chat, { "content-type": "text/plain" }],
    "a compressed body": [chat, { "content-encoding": "gzip" }],
    "an unknown key": [chat, { authorization: `Bearer sk-${"a".repeat(46)}` }],
    "a malformed key": [chat, { authorization: "Basic abc" }]
  }
  for (const [what, [body, headers]] of Object.entries(faults)) {
    it(`gets the same problem with a length and chunked, and nothing is sent: ${what}`, async () => {
      const ordinary = await post(gateway, body, false, headers)
      const chunked = await post(gateway, body, true, headers)
      assert.deepEqual(comparable(ordinary), comparable(chunked))
      assert.isAtLeast(ordinary.status, 400)
      assert.equal(upstream.seen.length, 0)
    })
  }

  const text = JSON.stringify(chat)
  const head = (start: string, ...lines: ReadonlyArray<string>) =>
    [
      start,
      `authorization: Bearer ${gateway.key}`,
      "content-type: application/json",
      "connection: close",
      ...lines
    ].join("\r\n")
  const host = "host: a"
  const length = `content-length: ${text.length}`
  /** Unusual requests and their results. */
  const odd: Record<string, readonly [bytes: () => string, status: number]> = {
    "a body above 1 MiB": [
      () => {
        const large = JSON.stringify({ ...chat, user: "x".repeat(1024 * 1024) })
        return `${head(`POST ${path} HTTP/1.1`, host, `content-length: ${large.length}`)}\r\n\r\n${large}`
      },
      200
    ],
    "no length and no body": [() => `${head(`POST ${path} HTTP/1.1`, host)}\r\n\r\n`, 400],
    "two hosts": [
      () => `${head(`POST ${path} HTTP/1.1`, host, "host: b", length)}\r\n\r\n${text}`,
      400
    ],
    "another method": [() => `${head(`GET ${path} HTTP/1.1`, host, length)}\r\n\r\n${text}`, 405],
    "a query": [
      () => `${head(`POST /vendors/openai${path}?a=b HTTP/1.1`, host, length)}\r\n\r\n${text}`,
      200
    ]
  }
  const exchange = (bytes: string) =>
    new Promise<string>((resolve, reject) => {
      const socket = connect(gateway.port, "127.0.0.1")
      let all = ""
      socket.on("data", (chunk) => (all += chunk.toString("latin1")))
      socket.on("end", () => resolve(all))
      socket.on("error", reject)
      socket.write(bytes)
    })
  for (const [what, [bytes, status]] of Object.entries(odd)) {
    it(`with ${what} takes the same path: ${status}`, async () => {
      const before = gateway.routed()
      const received = await exchange(bytes())
      assert.match(received, new RegExp(`^HTTP/1.1 ${status} `))
      assert.equal(gateway.routed(), before)
      assert.equal(upstream.seen.length, status === 200 ? 1 : 0)
      if (what === "a query") assert.match(upstream.seen[0]!.url, /\?a=b$/)
    })
  }

  for (const [expects, interim] of [
    ["100-continue", "HTTP/1.1 100 Continue\r\n\r\n"],
    ["something", ""]
  ] as const) {
    it(`a call that expects ${expects} gets one response and one charge`, async () => {
      await gateway.settled()
      const [before] = await gateway.calls()
      const lines = [host, `expect: ${expects}`, length]
      const received = await exchange(`${head(`POST ${path} HTTP/1.1`, ...lines)}\r\n\r\n${text}`)
      assert.isTrue(received.startsWith(`${interim}HTTP/1.1 200 `), received)
      await gateway.settled()
      assert.equal((await gateway.calls())[1]?.id, before?.id)
      assert.equal(upstream.seen.length, 1)
    })
  }

  for (const coding of ["chunked", "gzip", "identity", ""]) {
    it(`a length together with the transfer coding "${coding}" is refused`, async () => {
      const before = gateway.routed()
      for (const lines of [
        [length, `transfer-encoding: ${coding}`],
        [`transfer-encoding: ${coding}`, length]
      ]) {
        const start = `${head(`POST ${path} HTTP/1.1`, host, ...lines)}\r\n\r\n`
        const received = await exchange(
          `${start}${text.length.toString(16)}\r\n${text}\r\n0\r\n\r\n`
        )
        assert.match(received, /^HTTP\/1.1 400 /)
      }
      assert.equal(gateway.routed(), before)
      assert.equal(upstream.seen.length, 0)
    })
  }

  it("is served by the routes on a path that is not one of the passthrough", async () => {
    for (const other of ["/v1/completions", "/v1/fine_tuning/jobs", "/v1/chat/completions/"]) {
      const answer = await gateway.post(other, chat)
      assert.equal(answer.status, 404, other)
    }
    assert.equal(upstream.seen.length, 0)
  })

  it("a revoked key is refused, and removed from the known keys", async () => {
    const { key, row } = await gateway.run(makeKey(gateway.userId, ["inference"]))
    const own = { authorization: `Bearer ${key}` }
    assert.equal((await post(gateway, chat, false, own)).status, 200)
    assert.equal((await post(gateway, chat, false, own)).status, 200)
    await gateway.run(Effect.flatMap(ApiKeys, (keys) => keys.revoke(gateway.userId, row.id)))
    const refused = await post(gateway, chat, false, own)
    assert.equal(refused.status, 401)
    assert.equal(JSON.parse(refused.body).code, 1003)
    assert.isUndefined(
      await gateway.run(Effect.map(ApiKeys, (keys) => keys.cachedPrincipal(digestOf(key))))
    )
  })

  it("a call that costs nothing looks its key up each time, so a revoked key is refused", async () => {
    const { key, row } = await gateway.run(makeKey(gateway.userId, ["inference"]))
    upstream.script = (_, response) => json(response, 200, { results: [] })
    const own = { authorization: `Bearer ${key}`, "content-type": "application/json" }
    const moderate = () =>
      fetch(`${gateway.origin}/vendors/openai/v1/moderations`, {
        method: "POST",
        headers: own,
        body: JSON.stringify({ input: "x" })
      })
    assert.equal((await moderate()).status, 200)
    // From now on the key is cached, because the statement of the hold checks it again
    upstream.script = openAiScript
    assert.equal((await post(gateway, chat, false, own)).status, 200)
    await gateway.run(Effect.flatMap(ApiKeys, (keys) => keys.revoke(gateway.userId, row.id)))
    upstream.seen.length = 0
    assert.equal((await moderate()).status, 401)
    assert.equal(upstream.seen.length, 0)
    await gateway.settled()
  })

  it("the path of a task is served as a task, whatever routes a catalog opens", async () => {
    const answer = await gateway.post("/vendors/openai/v1/gpt-4o/edit", chat)
    assert.equal(answer.status, 404)
    assert.equal(upstream.seen.length, 0)
  })

  it("pipelined requests of a connection get their responses in order", async () => {
    // They may reach the upstream in any order; the second is answered first
    const second = Promise.withResolvers<void>()
    upstream.script = async (seen, response) => {
      const { user } = JSON.parse(seen.body) as { user: string }
      if (user === "first") await second.promise
      json(response, 200, { ...chatCompletion("gpt-4o"), id: user })
      second.resolve()
    }
    const received = await new Promise<string>((resolve, reject) => {
      const socket = connect(gateway.port, "127.0.0.1")
      let text = ""
      socket.on("data", (chunk) => {
        text += chunk.toString("latin1")
        if (text.split("HTTP/1.1 200 OK").length === 3 && text.includes('"id":"second"')) {
          socket.destroy()
          resolve(text)
        }
      })
      socket.on("error", reject)
      socket.write(piece(gateway, "first") + piece(gateway, "second"))
    })
    assert.isBelow(received.indexOf('"id":"first"'), received.indexOf('"id":"second"'))
    await gateway.settled()
  })

  it("a client that closes before its body is complete costs nothing", async () => {
    const calls = (await gateway.calls()).length
    const socket = connect(gateway.port, "127.0.0.1")
    socket.write(
      `POST ${path} HTTP/1.1\r\nhost: a\r\nauthorization: Bearer ${gateway.key}\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{`
    )
    await new Promise((resolve) => socket.on("connect", resolve))
    socket.destroy()
    assert.equal((await post(gateway, chat, false)).status, 200)
    assert.equal(upstream.seen.length, 1)
    await gateway.settled()
    assert.equal((await gateway.calls()).length, calls + 1)
  })

  it("a service that stops waits for the call, which is completed and charged", async () => {
    const stopping = await startGateway(env)
    assert.equal((await post(stopping, chat, false)).status, 200)
    let answer = () => {}
    upstream.script = (_, response) => {
      answer = () => json(response, 200, chatCompletion("gpt-4o"))
    }
    upstream.seen.length = 0
    const response = post(stopping, chat, false)
    await until(() => upstream.seen.length === 1, { what: "the upstream is called" })
    const stopped = stopping.stop()
    await refusesConnections(stopping)
    answer()
    const { headers, status } = await response
    assert.equal(status, 200)
    assert.match(String(headers["x-service-cost"]), /^\d+\.\d\d$/)
    await stopped
  })

  it("a service that stops lets streams end", async () => {
    const stopping = await startGateway(env)
    assert.equal((await post(stopping, chat, false)).status, 200)
    const gate = Promise.withResolvers<void>()
    upstream.script = (_, response) =>
      events(response, chatEvents(["a", "b"], true), () => gate.promise)
    upstream.seen.length = 0
    const response = post(stopping, { ...chat, stream: true }, false)
    await until(() => upstream.seen.length === 1, { what: "the upstream is called" })
    const stopped = stopping.stop()
    await refusesConnections(stopping)
    gate.resolve()
    assert.include((await response).body, "[DONE]")
    await stopped
  })

  it("responses that wait behind another on a broken connection are dropped", async () => {
    let completed = 0
    upstream.script = (seen, response) => {
      if (JSON.parse(seen.body).user === "first") return
      response.on("finish", () => (completed += 1))
      json(response, 200, chatCompletion("gpt-4o"))
    }
    const socket = connect(gateway.port, "127.0.0.1")
    socket.write(piece(gateway, "first") + piece(gateway, "second"))
    await until(() => completed === 1, { what: "the second is complete" })
    socket.destroy()
    const first = upstream.seen.find(({ body }) => body.includes("first"))!
    await until(() => first.aborted !== undefined, { what: "the first is aborted" })
    await gateway.settled()
  })

  it("a call that exceeds the service's time-outs is ended, and its upstream request too", async () => {
    const stopping = await startGateway(env)
    assert.equal((await post(stopping, chat, false)).status, 200)
    upstream.script = () => {}
    upstream.seen.length = 0
    const response = post(stopping, chat, false).then(
      ({ status }) => status,
      () => "broken"
    )
    await until(() => upstream.seen.length === 1, { what: "the upstream is called" })
    await stopping.stop()
    assert.include([503, "broken"], await response)
    await until(() => upstream.seen[0]!.aborted !== undefined, {
      what: "the upstream connection is closed"
    })
  }, 180_000)
})
