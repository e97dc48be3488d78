import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { connect } from "node:net"
import { problemCodes } from "../../src/domain/Problem.ts"
import type { HttpResult } from "../support/gateway.ts"
import { readResult } from "../support/gateway.ts"
import { GatewayProcess } from "../support/gatewayProcess.ts"
import { pause } from "../support/until.ts"

const path = "/vendors/alibaba/v1/text-to-image-max/generation"
const unknownTask = "01a1fde7-442b-7260-8c58-eefab31afd40"
const json = { "content-type": "application/json" }
const maxBytes = 20_000

let gateway: GatewayProcess
let key = ""
beforeAll(async () => {
  gateway = await GatewayProcess.start({ env: { MAX_BODY_BYTES: String(maxBytes) } })
  key = await gateway.key()
})
afterAll(() => gateway.close())

interface Sent {
  readonly method?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
}

const send = async (target: string, sent: Sent = {}): Promise<HttpResult> =>
  readResult(
    await fetch(`${gateway.url}${target}`, {
      ...sent,
      headers: { authorization: `Bearer ${key}`, ...sent.headers }
    })
  )

/** All members of RFC 9457 and docs/reference/errors.md#problem-body, and the headers of the status. */
const assertProblem = (
  answer: HttpResult,
  code: keyof typeof problemCodes,
  instance: string,
  pointers?: ReadonlyArray<string>
) => {
  const { status, title } = problemCodes[code]
  assert.strictEqual(answer.status, status, answer.text)
  assert.strictEqual(answer.headers.get("content-type"), "application/problem+json")
  assert.match(answer.headers.get("traceparent") ?? "", /^00-[0-9a-f]{32}-[0-9a-f]{16}-0[01]$/u)
  const { detail, error, errors, ...rest } = answer.json
  const type = `/docs/errors#${code}`
  assert.deepStrictEqual(rest, { type, title, status, instance, code })
  assert.isTrue(typeof detail === "string" && detail.length > 0)
  assert.notMatch(detail, /sql|effect|\.ts\b|stack/iu)
  assert.deepStrictEqual(
    errors?.map((it: { readonly pointer: string }) => it.pointer),
    pointers
  )
  assert.strictEqual(answer.headers.get("www-authenticate"), status === 401 ? "Bearer" : null)
  const isOpenAi = /^\/(?:v1|vendors\/openai)\//u.test(instance)
  assert.strictEqual(error !== undefined, isOpenAi)
  if (isOpenAi) {
    assert.hasAllKeys(error, ["message", "type", "param", "code"])
    assert.strictEqual(error.message, detail)
  }
}

const post = (body: string, headers: Readonly<Record<string, string>> = json): Sent => ({
  method: "POST",
  headers,
  body
})
const keys = "/manage/v1/api-keys"
const hooks = "/manage/v1/webhook-endpoints"
const cursor = (text: string) => Buffer.from(text).toString("base64url")

const cases: ReadonlyArray<
  readonly [string, string, Sent, keyof typeof problemCodes, ReadonlyArray<string>?]
> = [
  ["an unknown route", "/nope?x=1", {}, 2006],
  ["an unknown route of OpenAI's shape", "/v1/nope", {}, 2006],
  ["an unknown model of OpenAI's shape", "/vendors/openai/v1/x/generation", post("{}"), 2006],
  ["an unknown vendor", "/vendors/nobody/v1/x/generation", post("{}"), 2006],
  ["broken JSON", path, post("{"), 2002],
  ["an empty body", path, post(""), 2002],
  ["bytes that are no UTF-8", path, { ...post(""), body: "\u00ff" }, 2002],
  ["another type", path, post("{}", { "content-type": "text/plain" }), 2003],
  ["no key", path, post("{}", { ...json, authorization: "" }), 1001],
  ["a malformed header", path, post("{}", { ...json, authorization: "Basic x" }), 1002],
  ["an unknown key", path, post("{}", { ...json, authorization: "Bearer sk-no" }), 1002],
  ["an unknown field and a missing one", path, post('{"x":1}'), 2001, ["#/x", "#/prompt"]],
  ["the character U+0000", path, post('{"prompt":"a\\u0000"}'), 2001, ["#/prompt"]],
  ["half a surrogate pair", path, post('{"prompt":"a\\ud800"}'), 2001, ["#/prompt"]],
  ["a wrong dry_run", `${path}?dry_run=x`, post("{}"), 2001, ["#/query/dry_run"]],
  ["an unknown task", `${path}/${unknownTask}`, {}, 2005],
  ["an id that is not a UUID", `${path}/nonsense`, {}, 2005],
  ["an id of 300 characters", `${path}/${"x".repeat(300)}`, {}, 2005],
  ["an id of 300 characters in a management path", `${hooks}/whe_${"1".repeat(300)}`, {}, 2005],
  ["broken JSON to a management path", keys, post("{"), 2002],
  ["another type to a management path", keys, post("{}", { "content-type": "text/plain" }), 2003],
  ["no key to a management path", keys, { headers: { authorization: "" } }, 1001],
  ["the operator's path with a user's key", "/manage/v1/users", {}, 1004],
  ["U+0000 in a name", keys, post('{"name":"a\\u0000"}'), 2001, ["#/name"]],
  ["half a surrogate pair in a name", keys, post('{"name":"\\ud800"}'), 2001, ["#/name"]],
  ["U+0000 in an id", `${hooks}/whe_%00`, {}, 2005],
  ["U+0000 in a filter", "/manage/v1/tasks?model=%00", {}, 2001, ["#/query/model"]],
  ["an unknown endpoint", `${hooks}/whe_1`, {}, 2005],
  ["U+0000 in a cursor", `${keys}?cursor=${cursor("key_\0")}`, {}, 2001, ["#/query/cursor"]],
  [
    "a cursor beyond 64 bits",
    `/manage/v1/wallet/entries?cursor=${cursor("99999999999999999999")}`,
    {},
    2001,
    ["#/query/cursor"]
  ],
  ["a limit out of range", `${keys}?limit=101`, {}, 2001, ["#/query/limit"]],
  [
    "absurdly many fields to a management path",
    keys,
    post(JSON.stringify(Object.fromEntries(Array.from({ length: 101 }, (_, n) => [`k${n}`, n])))),
    2001,
    ["#"]
  ],
  [
    "absurdly many items to a management path",
    keys,
    post(JSON.stringify({ name: "a", scopes: Array.from({ length: 101 }, (_, n) => `s${n}`) })),
    2001,
    ["#/scopes"]
  ],
  ["an unknown management path", "/manage/v1/nope", {}, 2006],
  ["a slip in dry_run", `${path}?dryrun=true`, post('{"prompt":"x"}'), 2001, ["#/query/dryrun"]],
  ["a parameter where none is read", "/manage/v1/wallet?x=1", {}, 2001, ["#/query/x"]],
  [
    "every fault of a query, each once",
    `${keys}?limit=abc&cursor=zz&foo=1`,
    {},
    2001,
    ["#/query/foo", "#/query/cursor", "#/query/limit"]
  ],
  ["a limit in another notation", `${keys}?limit=0x10`, {}, 2001, ["#/query/limit"]],
  ["an empty limit", `${keys}?limit=`, {}, 2001, ["#/query/limit"]],
  [
    "a key that has expired already",
    keys,
    post('{"name":"a","expires_at":"2020-01-01T00:00:00Z"}'),
    2001,
    ["#/expires_at"]
  ],
  ...[
    "2030-02-31T00:00:00Z",
    "2030-01-01T00:00:00",
    "2030-01-01T24:00:00Z",
    "2030",
    "Jan 1 2030"
  ].map(
    (time) =>
      [
        `an invalid time: ${time}`,
        keys,
        post(`{"name":"a","expires_at":"${time}"}`),
        2001,
        ["#/expires_at"]
      ] as const
  ),
  ["no scope", keys, post('{"name":"a","scopes":[]}'), 2001, ["#/scopes"]],
  ["a scope twice", keys, post('{"name":"a","scopes":["manage","manage"]}'), 2001, ["#/scopes"]],
  ["no event", hooks, post('{"url":"https://example.com","events":[]}'), 2001, ["#/events"]],
  [
    "an event twice",
    hooks,
    post('{"url":"https://example.com","events":["task.failed","task.failed"]}'),
    2001,
    ["#/events"]
  ],
  ["a field where no body is read", `${hooks}/whe_1/rotate`, post('{"a":1}'), 2001, ["#/a"]],
  ["an array where no body is read", `${hooks}/whe_1/rotate`, post("[]"), 2001, ["#"]],
  [
    "a compressed body",
    path,
    post('{"prompt":"x"}', { ...json, "content-encoding": "gzip" }),
    2003
  ],
  [
    "a compressed body to a management path",
    keys,
    post('{"name":"a"}', { ...json, "content-encoding": "gzip" }),
    2003
  ],
  ["an empty body to a management path", keys, post(""), 2002],
  ["bytes that are no UTF-8 to a management path", keys, { ...post(""), body: "\u00ff" }, 2002],
  [
    "a webhook URL with a space around it",
    hooks,
    post('{"url":" https://example.com","events":["task.failed"]}'),
    2011,
    ["#/url"]
  ],
  [
    "a webhook URL that is not https",
    hooks,
    post('{"url":"http://example.com","events":["task.created"]}'),
    2011,
    ["#/url"]
  ]
]

describe("errors are RFC 9457 problems with all members", () => {
  for (const [name, target, sent, code, pointers] of cases) {
    it(`${name}: ${code}`, async () => {
      const bytes =
        sent.body === "\u00ff" ? { ...sent, body: new Uint8Array([0x7b, 0xff]) as never } : sent
      assertProblem(await send(target, bytes), code, target.split("?")[0]!, pointers)
    })
  }

  it("{} is accepted as a body if none is read, and a time may have any zone", async () => {
    const endpoint = { url: "https://example.com", events: ["task.failed"], enabled: false }
    const made = await gateway.call("POST", hooks, endpoint)
    const rotated = await gateway.call("POST", `${hooks}/${made.json.id}/rotate`, {})
    assert.strictEqual(rotated.status, 200, rotated.text)
    const later = "2030-01-01T01:30:00.5+02:00"
    const key = await gateway.call("POST", keys, { name: "a", expires_at: later })
    assert.strictEqual(key.json.expires_at, "2029-12-31T23:30:00.500Z")
  })

  it("a time whose year has more than four digits in UTC is refused: every accepted time can be shown", async () => {
    for (const expires_at of ["9999-12-31T23:59:59.999-00:01", "9999-12-31T12:00:00-14:00"]) {
      const made = await gateway.call("POST", keys, { name: "a", expires_at })
      assertProblem(made, 2001, keys, ["#/expires_at"])
    }
    const last = "9999-12-31T23:59:59.999Z"
    const key = await gateway.call("POST", keys, { name: "last", expires_at: last })
    assert.strictEqual(key.json.expires_at, last)
    const listed = await gateway.call("GET", keys)
    assert.strictEqual(listed.status, 200, listed.text)
    const entries = "/manage/v1/wallet/entries"
    const before = await gateway.call("GET", `${entries}?since=0000-01-01T00:00:00%2B00:01`)
    assertProblem(before, 2001, entries, ["#/query/since"])
    const first = await gateway.call("GET", `${entries}?since=0000-01-01T00:00:00Z`)
    assert.strictEqual(first.json.data.length, 1, first.text)
  })

  it("a password is never quoted, whatever its fault", async () => {
    for (const password of ["hunter2", 12345678, ["hunter2-hunter2"], "x".repeat(1001)]) {
      const refused = await gateway.manage("POST", "/users", { email: "a@example.com", password })
      assertProblem(refused, 2001, "/manage/v1/users", ["#/password"])
      assert.notMatch(refused.text, /hunter2|12345678|xxx/u)
    }
  })

  it("409 for an e-mail address that is taken, on create and on change", async () => {
    const first = await gateway.manage("POST", "/users", { email: "taken@example.com" })
    const other = await gateway.manage("POST", "/users", { email: "other@example.com" })
    assert.strictEqual(first.status, 201)
    const email = "Taken@example.com"
    assertProblem(await gateway.manage("POST", "/users", { email }), 2010, "/manage/v1/users")
    const at = `/users/${other.json.id}`
    assertProblem(await gateway.manage("PATCH", at, { email }), 2010, `/manage/v1${at}`)
  })

  for (const [method, target, allow] of [
    ["PUT", path, "POST"],
    ["POST", `${path}/${unknownTask}`, "GET, HEAD, DELETE"],
    ["POST", "/healthz", "GET, HEAD"],
    ["PROPFIND", "/v1/images/generations", "POST"],
    ["PUT", keys, "POST, GET, HEAD"],
    ["DELETE", "/manage/v1/wallet", "GET, HEAD, PATCH"],
    ["OPTIONS", "/manage/v1/wallet", "GET, HEAD, PATCH"],
    ["PUT", `${keys}/key_1`, "GET, HEAD, PATCH, DELETE"]
  ] as const) {
    it(`405 for ${method} ${target} names the allowed methods`, async () => {
      const answer = await send(target, { method })
      assertProblem(answer, 2007, target)
      assert.strictEqual(answer.headers.get("allow"), allow)
    })
  }

  for (const target of [path, keys]) {
    const head = () =>
      `POST ${target} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${key}\r\n` +
      "Content-Type: application/json\r\n"
    it(`413 for ${target} by its length, without reading the rest, and the connection closes`, async () => {
      const answer = await speak([`${head()}Content-Length: ${10 * maxBytes}\r\n\r\n`, "{"])
      assert.match(answer, /^HTTP\/1.1 413 [^]*"code":2004/u)
    })
    it(`413 for ${target} as a stream without a length, and the connection closes`, async () => {
      const chunk = `1000\r\n${"x".repeat(4096)}\r\n`
      const answer = await speak([
        `${head()}Transfer-Encoding: chunked\r\n\r\n`,
        ...Array.from({ length: 8 }, () => chunk)
      ])
      assert.match(answer, /^HTTP\/1.1 413 [^]*"code":2004/u)
    })
  }
})

/** Speaks HTTP by hand; returns what was received until the server closed the connection. */
const speak = (parts: ReadonlyArray<string>) =>
  new Promise<string>((resolve, reject) => {
    let answer = ""
    const socket = connect(Number(new URL(gateway.url).port), "127.0.0.1")
    socket.on("data", (data) => (answer += data.toString()))
    socket.on("error", () => {})
    socket.on("close", () => resolve(answer))
    socket.setTimeout(5000, () => reject(new Error(`the connection stayed open: ${answer}`)))
    void (async () => {
      for (const part of parts) {
        if (!socket.writable) break
        socket.write(part)
        await pause(10)
      }
    })()
  })

describe("every response carries Traceparent", () => {
  for (const target of ["/healthz", "/openapi.json", "/", "/nope", path, "/metrics"]) {
    it(target, async () => {
      const answer = await fetch(`${gateway.url}${target}`, { redirect: "manual" })
      await answer.arrayBuffer()
      assert.match(answer.headers.get("traceparent") ?? "", /^00-[0-9a-f]{32}-[0-9a-f]{16}-01$/u)
    })
  }

  it("continues a valid incoming one, and ignores an invalid one", async () => {
    const trace = "4bf92f3577b34da6a3ce929d0e0e4736"
    const at = async (traceparent: string) => {
      const answer = await send("/healthz", { headers: { traceparent } })
      return answer.headers.get("traceparent")?.split("-") ?? []
    }
    const continued = await at(`00-${trace}-00f067aa0ba902b7-00`)
    assert.strictEqual(continued[1], trace)
    assert.notStrictEqual(continued[2], "00f067aa0ba902b7")
    assert.strictEqual(continued[3], "00")
    // A later version with more fields and further flags: W3C Trace Context, 3.2.4
    for (const later of [
      `01-${trace}-00f067aa0ba902b7-00`,
      `cc-${trace}-00f067aa0ba902b7-02-more`,
      `00-${trace}-00f067aa0ba902b7-fe`
    ]) {
      assert.deepStrictEqual((await at(later)).toSpliced(2, 1), ["00", trace, "00"], later)
    }
    for (const invalid of [
      `00-${"0".repeat(32)}-00f067aa0ba902b7-01`,
      `00-${trace}-${"0".repeat(16)}-01`,
      `00-${trace.toUpperCase()}-00f067aa0ba902b7-01`,
      `00-${trace}-00f067aa0ba902b7-01-more`,
      `01-${trace}-00f067aa0ba902b7-01more`,
      `00-${trace}-00f067aa0ba902b7-zz`,
      `ff-${trace}-00f067aa0ba902b7-01`,
      "nonsense"
    ]) {
      const fresh = await at(invalid)
      assert.notStrictEqual(fresh[1], trace)
      assert.match(fresh[1] ?? "", /^(?!0{32})[0-9a-f]{32}$/u)
    }
  })
})

describe("the sandbox", () => {
  it("without a vendor key every response is marked as sandbox", async () => {
    const bodies: ReadonlyArray<readonly [string, Sent]> = [
      [`${path}?dry_run=true`, post('{"prompt":"x"}')],
      [path, post("{}")],
      [`${path}/${unknownTask}`, {}],
      ["/v1/models", {}],
      ["/vendors/openai/v1/nope", {}],
      ["/manage/v1/wallet", {}],
      [keys, post("{")],
      ["/healthz", {}],
      ["/nope", {}],
      [path, { headers: { authorization: "" } }]
    ]
    for (const [target, sent] of bodies) {
      const { headers } = await send(target, sent)
      assert.strictEqual(headers.get("x-service-sandbox"), "true", target)
    }
  })
})
