import { assert, layer } from "@effect/vitest"
import { DateTime, Effect, Layer, Option } from "effect"
import { SqlClient } from "effect/sql"
import type { Server } from "node:http"
import type { AddressInfo } from "node:net"
import { taskErrorHelp } from "../../src/domain/ErrorHelp.ts"
import { problemCodes } from "../../src/domain/Problem.ts"
import type { ProblemCode } from "../../src/domain/Problem.ts"
import { listenerBounds, makeListener } from "../../src/http/server/listener/Listener.ts"
import { taskErrorOf } from "../../src/tasks/submission/VendorFailure.ts"
import { ApiKeys } from "../../src/users/ApiKeys.ts"
import { VendorError, VendorErrorClass } from "../../src/vendors/VendorError.ts"
import { browserWith, signIn } from "../support/browser.ts"
import {
  advance,
  callWith,
  eventually,
  GatewayHttp,
  layerGateway,
  makeUser,
  operator
} from "../support/gateway.ts"
import type { HttpResult } from "../support/gateway.ts"
import { liveLayer } from "../support/liveLayer.ts"
import { localServer } from "../support/localServer.ts"
import { png } from "../support/media.ts"
import { rawResponses, rawHttp } from "../support/rawHttp.ts"
import { Running, runningGateway } from "../support/running.ts"

const path = "/vendors/alibaba/v1/text-to-image-max/generation"
const edit = "/vendors/alibaba/v1/image-edit/generation"
const chat = "/v1/chat/completions"
const anthropicPath = "/vendors/anthropic/v1/messages"
const imagesPath = "/v1/images/generations"
const hanging = { prompt: "[[sim:hang]]" }
const unknownTask = `${path}/00000000-0000-7000-8000-000000000000`

/** docs/reference/errors.md#problem-codes; 2012 to 2016: ADR 0150, 0110. */
const statuses: Readonly<Record<ProblemCode, number>> = {
  1001: 401,
  1002: 401,
  1003: 401,
  1004: 403,
  1005: 401,
  1006: 401,
  1007: 403,
  1101: 402,
  1102: 402,
  1103: 402,
  1201: 429,
  1202: 429,
  1203: 429,
  2001: 400,
  2002: 400,
  2003: 415,
  2004: 413,
  2005: 404,
  2006: 404,
  2007: 405,
  2008: 422,
  2010: 409,
  2011: 400,
  2012: 403,
  2013: 416,
  2014: 400,
  2015: 408,
  2016: 431,
  2017: 424,
  2018: 400,
  2019: 424,
  2020: 426,
  5000: 500,
  5002: 502,
  5003: 503,
  5004: 504
}

/** A vendor that the prompt scripts: no response, a refusal, a rate limit, or a broken connection. */
const vendor = localServer((request, response) => {
  let body = ""
  request.on("data", (chunk: Buffer) => (body += chunk.toString()))
  request.on("end", () => {
    if (body.includes("silent")) return
    if (body.includes("unpaid")) response.writeHead(401).end("{}")
    else if (body.includes("used up")) {
      const headers = { "retry-after": "60", "x-ratelimit-remaining-requests": "0" }
      response.writeHead(429, headers).end("{}")
    } else response.destroy()
  })
})

/** A gateway on a port, with the real clock and low limits. */
const smallGateway = Layer.unwrap(
  Effect.map(vendor, (url) =>
    Layer.effect(
      GatewayHttp,
      Effect.map(Running, (running) => ({
        fetch: (target: string, init?: RequestInit) =>
          Effect.promise(() => fetch(`${running.url}${target}`, { redirect: "manual", ...init }))
      }))
    ).pipe(
      Layer.provideMerge(
        runningGateway({
          RATE_LIMIT_PER_MINUTE: "20",
          CONCURRENT_TASKS_PER_KEY: "2",
          MAX_BODY_BYTES: "4096",
          OPENAI_API_KEY: "sk-of-the-service",
          OPENAI_BASE_URL: `${url}/v1`,
          ANTHROPIC_API_KEY: "sk-of-the-service",
          ANTHROPIC_BASE_URL: url,
          UPSTREAM_TIMEOUT: "3 seconds",
          LOG_LEVEL: "None"
        })
      )
    )
  )
)

const responseTo = (port: number, bytes: string) =>
  Effect.gen(function* () {
    const { text } = yield* rawHttp(port, (write) => write(bytes))
    const [answer] = rawResponses(text)
    if (answer === undefined) throw new Error("no answer")
    return answer
  })

const raw = (bytes: string) => Effect.flatMap(Running, ({ port }) => responseTo(port, bytes))

/** The listener with shorter timeouts, without a service behind it. */
const shortTimeouts = Effect.acquireRelease(
  Effect.callback<Server>((resume) => {
    const { server } = makeListener({ ...listenerBounds, headersMillis: 200, checkMillis: 50 })
    server.listen(0, "127.0.0.1", () => resume(Effect.succeed(server)))
  }),
  (server) => Effect.sync(() => void (server.closeAllConnections(), server.close()))
)

const text = (key: string, body: string, type = "application/json") =>
  callWith(key)("POST", path, undefined, { "content-type": type }).pipe(
    Effect.provideServiceEffect(
      GatewayHttp,
      Effect.map(GatewayHttp, (http) => ({
        fetch: (target: string, init?: RequestInit) => http.fetch(target, { ...init, body })
      }))
    )
  )

const ask = (prompt: string, at = chat, model = "gpt-4o") =>
  Effect.flatMap(makeUser(), (user) =>
    user.call("POST", at, {
      model,
      max_tokens: 5,
      messages: [{ role: "user", content: prompt }]
    })
  )

const images = (prompt: string, prefer: string) =>
  Effect.flatMap(makeUser(), (user) =>
    user.call("POST", imagesPath, { model: "text-to-image-max", prompt }, { prefer })
  )

/** Repeats the request until this status; at most 100 requests. */
const until = (status: number, request: Effect.Effect<HttpResult, never, GatewayHttp>) =>
  Effect.repeat(request, { until: (answer) => answer.status === status, times: 100 })

/** How to provoke each code. The type requires every code of the service. */
const provoked = {
  1001: callWith(undefined)("GET", unknownTask),
  1002: callWith("sk-nonsense")("GET", unknownTask),
  1003: Effect.gen(function* () {
    const user = yield* makeUser()
    const { key } = yield* (yield* ApiKeys).create({
      userId: user.id,
      name: "old",
      scopes: ["inference"],
      expiresAt: Option.some(yield* DateTime.now)
    })
    return yield* callWith(key)("GET", unknownTask)
  }),
  1004: Effect.flatMap(makeUser({ scopes: ["manage"] }), (it) => it.call("GET", unknownTask)),
  1005: signIn({ operator_token: "nobody's" }, {}),
  1006: browserWith(`gateway_session=${"A".repeat(43)}`).call(
    "GET",
    "/manage/v1/session",
    undefined,
    {}
  ),
  1007: signIn({ operator_token: "nobody's" }, { origin: "https://other.example.com" }),
  1101: Effect.flatMap(makeUser({ credits: 7 }), (it) => it.call("POST", path, hanging)),
  1102: Effect.gen(function* () {
    const user = yield* makeUser()
    const { json } = yield* user.call("POST", "/manage/v1/api-keys", { name: "limited" })
    yield* user.call("PATCH", `/manage/v1/api-keys/${json.id}`, {
      spend_limit: "7",
      reset: "monthly"
    })
    return yield* callWith(json.key)("POST", path, hanging)
  }),
  1103: Effect.flatMap(makeUser(), (it) =>
    it.call("POST", path, hanging, { "x-service-max-cost": "7" })
  ),
  1201: Effect.flatMap(makeUser(), (it) => until(429, it.call("GET", unknownTask))),
  1202: Effect.flatMap(makeUser(), (it) => until(429, it.call("POST", path, hanging))),
  // The first 429 is the vendor's own
  1203: Effect.andThen(ask("used up", chat, "gpt-4o-mini"), ask("used up", chat, "gpt-4o-mini")),
  2001: Effect.flatMap(makeUser(), (it) => it.call("POST", path, { prompt: 1, what: 2 })),
  2002: Effect.flatMap(makeUser(), (it) => text(it.key, "{")),
  2003: Effect.flatMap(makeUser(), (it) => text(it.key, "{}", "text/plain")),
  2004: Effect.flatMap(makeUser(), (it) => it.call("POST", path, { prompt: "a".repeat(5000) })),
  2005: Effect.flatMap(makeUser(), (it) => it.call("GET", unknownTask)),
  2006: Effect.flatMap(makeUser(), (it) => it.call("POST", "/vendors/nobody/v1/x/generation", {})),
  2007: Effect.flatMap(makeUser(), (it) => it.call("PUT", path, hanging)),
  2008: Effect.gen(function* () {
    const { call } = yield* makeUser()
    const key = { "idempotency-key": "k" }
    yield* call("POST", path, hanging, key)
    return yield* call("POST", path, { prompt: "another" }, key)
  }),
  2010: Effect.gen(function* () {
    const { call } = yield* makeUser()
    const task = `${path}/${(yield* call("POST", path, hanging)).json.task_info.id}`
    yield* call("DELETE", task)
    return yield* call("DELETE", task)
  }),
  2011: Effect.flatMap(makeUser(), (it) =>
    it.call("POST", "/manage/v1/webhook-endpoints", {
      url: "http://hooks.example.com",
      events: ["task.created"]
    })
  ),
  2012: callWith(undefined)("GET", `/artifacts/art_${"0".repeat(32)}?expires=1&signature=x`),
  2013: Effect.gen(function* () {
    const { call } = yield* makeUser()
    const task = `${path}/${(yield* call("POST", path, { prompt: "x" })).json.task_info.id}`
    const done = yield* call("GET", task, undefined, { prefer: "wait=30" })
    const link = new URL(done.json.images[0])
    const range = { range: "bytes=999999999-" }
    return yield* callWith(undefined)("GET", link.pathname + link.search, undefined, range)
  }),
  2014: raw("RUBBISH\r\n\r\n"),
  2015: Effect.flatMap(shortTimeouts, (server) =>
    responseTo((server.address() as AddressInfo).port, "GET /healthz HTTP/1.1\r\nHost: x\r\n")
  ),
  2016: raw(`GET /healthz HTTP/1.1\r\nHost: x\r\nX: ${"a".repeat(20_000)}\r\n\r\n`),
  5000: Effect.gen(function* () {
    const { call } = yield* makeUser()
    const sql = yield* SqlClient.SqlClient
    yield* sql`ALTER TABLE webhook_endpoints RENAME TO away`
    const answer = yield* call("GET", "/manage/v1/webhook-endpoints")
    yield* sql`ALTER TABLE away RENAME TO webhook_endpoints`
    return answer
  }),
  2017: images("[[sim:hang]]", "wait=0"),
  2018: images("[[sim:refuse]]", "wait=30"),
  2019: images("[[sim:fail]]", "wait=30"),
  2020: raw(
    "GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
  ),
  5002: ask("break"),
  5003: ask("unpaid"),
  5004: ask("silent", anthropicPath, "claude-sonnet-4-5")
} satisfies Record<ProblemCode, Effect.Effect<HttpResult, unknown, unknown>>

const traceparent = /^00-[0-9a-f]{32}-[0-9a-f]{16}-0[01]$/u

/** docs/reference/errors.md#error-members-of-the-vendors */
const errorMembers = new Map([
  [chat, ["message", "type", "param", "code"]],
  [imagesPath, ["message", "type", "param", "code"]],
  [anthropicPath, ["message", "type"]]
])

/** docs/reference/errors.md#problem-body: the rules for every problem. */
const assertWhole = (
  code: string,
  answer: HttpResult,
  status: number,
  title: string | undefined
) => {
  const { headers, json } = answer
  assert.strictEqual(json?.code, Number(code), answer.text)
  assert.strictEqual(answer.status, status, code)
  assert.strictEqual(headers.get("content-type"), "application/problem+json")
  assert.match(headers.get("traceparent") ?? "", traceparent)
  const isAnthropic = json.instance === anthropicPath
  assert.deepInclude(json, { title, status, type: isAnthropic ? "error" : `/docs/errors#${code}` })
  assert.strictEqual(json.request_id !== undefined, isAnthropic)
  assert.isString(json.detail)
  assert.notStrictEqual(json.detail, "")
  assert.match(json.instance, /^\/[^?]*$/u)
  assert.strictEqual(json.errors !== undefined, code === "2001" || code === "2011", code)
  assert.strictEqual(headers.get("www-authenticate"), status === 401 ? "Bearer" : null)
  assert.strictEqual(headers.get("allow") !== null, status === 405)
  assert.strictEqual(headers.get("upgrade"), status === 426 ? "HTTP/1.1" : null)
  const retryAfter = headers.get("retry-after")
  if (status === 429 || status === 503) assert.match(retryAfter ?? "", /^[1-9]\d*$/u)
  const members = errorMembers.get(json.instance)
  assert.strictEqual(json.error !== undefined, members !== undefined)
  if (members !== undefined) {
    assert.hasAllKeys(json.error, members)
    assert.strictEqual(json.error.message, json.detail)
  }
}

liveLayer(smallGateway)("codes of problems", (it) => {
  it.effect("are those of the documentation, each with its status", () =>
    Effect.sync(() => {
      const known = Object.entries(problemCodes).map(([code, { status }]) => [code, status])
      assert.deepStrictEqual(Object.fromEntries(known), statuses)
    })
  )

  for (const [code, status] of Object.entries(statuses)) {
    const provoke = Object.entries(provoked).find(([it]) => it === code)?.[1]
    it.effect(`include ${code} with status ${status}, whose type links to its explanation`, () =>
      Effect.gen(function* () {
        const answer = yield* provoke ?? Effect.die(code)
        const title = Object.entries(problemCodes).find(([it]) => it === code)?.[1].title
        assertWhole(code, answer, status, title)
        const page = yield* callWith(undefined)("GET", "/docs/errors")
        assert.include(page.text, `<tr id="${code}"><td>${code}</td><td>${status}</td>`)
      })
    )
  }
})

const prompted = (prompt: string) => ({ path, body: { prompt } })

/** How a task fails with each code. The type requires every code of the service. */
const failing = (images: string) =>
  ({
    400: { path: edit, body: { prompt: "x", n: 1, images: [`${images}/small.png`] } },
    3001: prompted("[[sim:refuse]]"),
    3002: prompted("[[sim:429=100]]"),
    3003: prompted("[[sim:timeout]]"),
    3004: prompted("[[sim:lost]]"),
    3005: prompted("[[sim:fail]]"),
    4002: { path: edit, body: { prompt: "x", n: 1, images: [`${images}/none.png`] } },
    4004: prompted("[[sim:hang]] cancelled"),
    4005: prompted("[[sim:hang]]"),
    4008: prompted("[[sim:operator]]")
  }) satisfies Record<keyof typeof taskErrorHelp, { path: string; body: object }>

layer(layerGateway({ env: { TASK_DEADLINE: "3 minutes" } }), { timeout: "60 seconds" })(
  "codes of tasks",
  (it) => {
    it.effect("are shown equally by GET and by the event, and nothing is charged", () =>
      Effect.gen(function* () {
        const user = yield* makeUser()
        const small = Buffer.from(png({ width: 10, height: 10 }))
        const images = yield* localServer(({ url }, response) => {
          if (url === "/small.png") response.end(small)
          else response.writeHead(404).end()
        })
        const hook = { url: "https://hooks.example.com/", events: ["task.failed"] }
        yield* user.call("POST", "/manage/v1/webhook-endpoints", hook)
        const made: Array<readonly [string, string]> = []
        for (const [code, { body, path: at }] of Object.entries(failing(images))) {
          const created = yield* user.call("POST", at, body)
          assert.strictEqual(created.status, 202, created.text)
          made.push([code, `${at}/${created.json.task_info.id}`])
        }
        yield* user.call("DELETE", made.find(([code]) => code === "4004")?.[1] ?? "")
        yield* advance("4 minutes", "5 seconds")
        const deliveries = "/manage/v1/webhook-deliveries?type=task.failed&status=succeeded"
        yield* eventually(
          user.call("GET", deliveries),
          ({ json }) => json.data.length === made.length
        )
        for (const [code, task] of made) {
          const { json } = yield* user.call("GET", task)
          assert.hasAllKeys(json, ["task_info"])
          const { error, id, status } = json.task_info
          assert.strictEqual(status, "failed", code)
          assert.hasAllKeys(error, ["code", "title", "detail"])
          assert.strictEqual(error.code, Number(code), error.detail)
          assert.isAtMost(error.detail.length, 500)
          const sql = yield* SqlClient.SqlClient
          const [event] = yield* sql`
          SELECT convert_from(body, 'UTF8')::jsonb AS body FROM events
          WHERE task_id = ${id} AND type = 'task.failed'`
          assert.deepNestedInclude(event, { "body.data.payload": json })
        }
        const wallet = yield* user.call("GET", "/manage/v1/wallet")
        assert.deepInclude(wallet.json, { settled_balance: "1000.00", held_balance: "0.00" })
      })
    )

    it.effect("are listed in /docs/errors", () =>
      Effect.gen(function* () {
        const page = yield* operator("GET", "/docs/errors")
        assert.match(page.headers.get("content-type") ?? "", /^text\/html/u)
        for (const code of [400, 3001, 3002, 3003, 3004, 3005, 4002, 4004, 4005, 4008]) {
          assert.include(page.text, `<tr id="${code}"><td>${code}</td>`)
        }
        assert.strictEqual(Object.keys(taskErrorHelp).length, 10)
      })
    )

    it.effect("cover the task error of every vendor failure", () =>
      Effect.sync(() => {
        for (const failure of VendorErrorClass.literals) {
          const { code } = taskErrorOf(new VendorError({ class: failure, message: "m" }))
          assert.property(taskErrorHelp, String(code))
        }
      })
    )
  }
)
