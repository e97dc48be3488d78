import { assert } from "@effect/vitest"
import { Effect } from "effect"
import * as fc from "fast-check"
import { jsonDepthMax } from "../../src/domain/json/JsonLimits.ts"
import { listenerBounds } from "../../src/http/server/listener/Listener.ts"
import { anyText } from "../support/anyText.ts"
import { keepsLessThan, kept, megabyte } from "../support/heap.ts"
import { liveLayer } from "../support/liveLayer.ts"
import { rawResponses, rawHttp } from "../support/rawHttp.ts"
import { call, json, Running, runningGateway } from "../support/running.ts"

/** Any input gets a problem or a closed connection within limits, never a 500 and never a hang. */

const create = "/vendors/alibaba/v1/text-to-image-max/generation"
const edit = "/vendors/google/v1/image-edit-pro/edit"
const bodyMax = 256 * 1024

interface Problem {
  readonly status: number
  readonly code: number
  readonly errors?: ReadonlyArray<{ readonly pointer: string; readonly detail: string }>
}

const problemAt = Effect.fnUntraced(function* (path: string, init: RequestInit) {
  const answer = yield* call(path, init)
  const text = yield* Effect.promise(() => answer.text())
  assert.strictEqual(answer.headers.get("content-type"), "application/problem+json", text)
  assert.match(answer.headers.get("traceparent") ?? "", /^00-/)
  return JSON.parse(text) as Problem
})

/** Asserts that the raw response is a problem and closes the connection. Returns its trace id. */
const assertProblem = (text: string, status: number, code: number): string => {
  const [head = "", body = ""] = text.split("\r\n\r\n")
  assert.isTrue(head.startsWith(`HTTP/1.1 ${status} `), text)
  assert.match(head, /^content-type: application\/problem\+json$/imu)
  assert.match(head, /^connection: close$/imu)
  const problem = JSON.parse(body)
  assert.deepStrictEqual([problem.status, problem.code], [status, code])
  const trace = /^traceparent: 00-([0-9a-f]{32})-[0-9a-f]{16}-01$/imu.exec(head)
  assert.isNotNull(trace, head)
  return trace?.[1] ?? ""
}

const bounds = { ...listenerBounds, headersMillis: 400, requestMillis: 800, checkMillis: 50 }

liveLayer(runningGateway({ MAX_BODY_BYTES: String(bodyMax) }, bounds))(
  "robustness of the HTTP border",
  (it) => {
    const codeOf = (
      body: string | Uint8Array<ArrayBuffer>,
      path = create,
      headers: Record<string, string> = {}
    ) =>
      Effect.map(
        problemAt(path, {
          method: "POST",
          body,
          headers: { "content-type": "application/json", ...headers }
        }),
        ({ code }) => code
      )

    it.effect(
      "arbitrary JSON is a problem or a task, never a 500",
      () =>
        Effect.gen(function* () {
          const { key, url } = yield* Running
          const field = fc.constantFrom("prompt", "images", "size", "n", "seed", "__proto__", "x/~")
          const body = fc.oneof(
            fc.jsonValue(),
            fc.dictionary(field, fc.oneof(fc.jsonValue(), anyText))
          )
          const path = fc.constantFrom(
            create,
            edit,
            "/manage/v1/api-keys",
            "/manage/v1/webhook-endpoints"
          )
          yield* Effect.promise(() =>
            fc.assert(
              fc.asyncProperty(path, body, async (path, body) => {
                const answer = await fetch(`${url}${path}?dry_run=true`, {
                  ...json(body),
                  headers: { authorization: `Bearer ${key}`, "content-type": "application/json" }
                })
                const text = await answer.text()
                assert.isBelow(answer.status, 500, text)
                if (answer.status >= 400) assert.isNumber((JSON.parse(text) as Problem).code)
              }),
              { numRuns: 300 }
            )
          )
        }),
      180_000
    )

    it.effect(
      "arbitrary bytes, queries and headers are never a 500",
      () =>
        Effect.gen(function* () {
          const { key, url } = yield* Running
          const word = fc.string({ unit: fc.constantFrom(..."aZ0%&=/?#;:.,-_~+ \"'<>[]{}\\") })
          yield* Effect.promise(() =>
            fc.assert(
              fc.asyncProperty(
                fc.uint8Array({ maxLength: 200 }),
                word,
                word,
                async (bytes, path, header) => {
                  const target = `${url}/vendors/alibaba/v1/${encodeURI(path)}`
                  for (const [method, body] of [
                    ["POST", Buffer.from(bytes)],
                    ["GET", undefined],
                    ["DELETE", undefined]
                  ] as const) {
                    const answer = await fetch(
                      method === "POST" ? `${url}${create}?${path}` : target,
                      {
                        method,
                        ...(body === undefined ? {} : { body }),
                        headers: {
                          authorization: `Bearer ${key}`,
                          "content-type": "application/json",
                          "idempotency-key": `k${header}`,
                          "if-none-match": header,
                          prefer: header,
                          range: header,
                          traceparent: header
                        }
                      }
                    )
                    const text = await answer.text()
                    assert.isBelow(answer.status, 500, `${method} ${path} ${header} ${text}`)
                  }
                }
              ),
              { numRuns: 100 }
            )
          )
        }),
      180_000
    )

    it.effect("deep nesting, huge numbers, lone surrogates and wrong encodings are 400", () =>
      Effect.gen(function* () {
        const deep = 40_000
        assert.strictEqual(yield* codeOf("[".repeat(deep)), 2002)
        for (const [depth, code] of [
          [jsonDepthMax - 1, 2001],
          [jsonDepthMax + 1, 2002],
          [deep, 2002]
        ] as const) {
          const nested = "[".repeat(depth) + "]".repeat(depth)
          assert.strictEqual(yield* codeOf(nested), code)
          assert.strictEqual(yield* codeOf(`${'{"a":'.repeat(depth)}1${"}".repeat(depth)}`), code)
          assert.strictEqual(yield* codeOf(`{"prompt":${nested}}`), code)
          assert.strictEqual(yield* codeOf(`{"name":${nested}}`, "/manage/v1/api-keys"), code)
        }
        for (const number of ["1e400", "-1e400", "9007199254740993", "1.5", "1e-400", "-1"]) {
          const code = yield* Effect.map(
            call(create, json(`{"prompt":"a","seed":${number}}`)),
            ({ status }) => status
          )
          assert.strictEqual(code, number === "1e-400" ? 202 : 400, number)
        }
        assert.strictEqual(yield* codeOf('{"prompt":"\\ud800"}'), 2001)
        assert.strictEqual(yield* codeOf('{"prompt":"\\u0000"}'), 2001)
        assert.strictEqual(yield* codeOf(Buffer.from('{"prompt":"é"}', "latin1")), 2002)
        assert.strictEqual(yield* codeOf(Buffer.from('{"prompt":"a"}', "utf16le")), 2002)
        assert.strictEqual(yield* codeOf(Buffer.from([0xed, 0xa0, 0x80])), 2002)
        for (const text of ["", " ", "{", "nul", "NaN", "{'a':1}", '{"a":1,}', "{} {}"]) {
          assert.strictEqual(yield* codeOf(text), 2002, text)
        }
        for (const type of ["text/plain", "application/x-www-form-urlencoded", "", "json"]) {
          assert.strictEqual(yield* codeOf("{}", create, { "content-type": type }), 2003, type)
        }
      })
    )

    it.effect("the last of duplicate keys counts, as in every JSON parser (ADR 0110)", () =>
      Effect.gen(function* () {
        const answer = yield* call(create, json('{"prompt":1,"prompt":"a"}'))
        assert.strictEqual(answer.status, 202)
        assert.strictEqual(yield* codeOf('{"prompt":"a","prompt":1}'), 2001)
      })
    )

    it.effect("connections that send headers or body slowly are closed within the time-outs", () =>
      Effect.gen(function* () {
        const { key, port } = yield* Running
        const slowly = (text: string) =>
          rawHttp(port, async (write) => {
            for (const character of text) {
              write(character)
              await new Promise((resolve) => setTimeout(resolve, 20))
            }
          })
        const header = yield* slowly(`GET /healthz HTTP/1.1\r\nHost: x\r\nX: ${"a".repeat(300)}`)
        assertProblem(header.text, 408, 2015)
        assert.isBelow(header.millis, 3000)
        const body = yield* rawHttp(port, (write) =>
          write(
            `POST ${create} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${key}\r\nContent-Type: application/json\r\nContent-Length: 10\r\n\r\n{`
          )
        )
        assert.isBelow(body.millis, 3000)
        assertProblem(body.text, 408, 2015)
      })
    )

    it.effect("input that is not a request gets a problem with its own Traceparent", () =>
      Effect.gen(function* () {
        const { port } = yield* Running
        const get = "GET /healthz HTTP/1.1\r\nHost: x\r\n"
        const traces = new Set<string>()
        for (const [text, status, code] of [
          [`${get}X: ${"a".repeat(20_000)}\r\n\r\n`, 431, 2016],
          ["\u0016\u0003\u0001\u0000garbage\r\n\r\n", 400, 2014],
          ["CONNECT example.com:443 HTTP/1.1\r\nHost: x\r\n\r\n", 400, 2014],
          [`${get}Bad Header: x\r\n\r\n`, 400, 2014]
        ] as const) {
          const answer = yield* rawHttp(port, (write) => write(text))
          traces.add(assertProblem(answer.text, status, code))
          assert.match(answer.text, /^date: \w{3}, \d\d \w{3} \d{4} [\d:]{8} GMT\r$/mu)
        }
        assert.strictEqual(traces.size, 4)
      })
    )

    it.effect("a broken body gets a problem in the shape of its route", () =>
      Effect.gen(function* () {
        const { key, port } = yield* Running
        const path = "/v1/messages"
        const head = `POST ${path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${key}\r\nContent-Type: application/json\r\n`
        const extension = `1;${"x".repeat(20_000)}\r\n{\r\n`
        for (const [text, status, code] of [
          [`${head}Transfer-Encoding: chunked\r\n\r\nnumber\r\n`, 400, 2014],
          [`${head}Transfer-Encoding: chunked\r\n\r\n${extension}`, 413, 2004],
          [`${head}Content-Length: 10\r\n\r\n{`, 408, 2015]
        ] as const) {
          const answer = yield* rawHttp(port, (write) => write(text))
          const trace = assertProblem(answer.text, status, code)
          const [response] = rawResponses(answer.text)
          const { instance, request_id, type } = response?.json ?? {}
          assert.deepStrictEqual([type, instance, request_id], ["error", path, trace])
          assert.strictEqual(
            response?.headers.get("x-should-retry"),
            status === 408 ? null : "false"
          )
        }
      })
    )

    it.effect("smuggling is refused", () =>
      Effect.gen(function* () {
        const { port } = yield* Running
        const status = (text: string) =>
          Effect.map(
            rawHttp(port, (write) => write(text)),
            (answer) => answer.text.split(" ", 2)[1]
          )
        const post = `POST ${create} HTTP/1.1\r\nHost: x\r\n`
        assert.strictEqual(
          yield* status(`${post}Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`),
          "400"
        )
        assert.strictEqual(
          yield* status(`${post}Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello`),
          "400"
        )
      })
    )

    it.effect("a missing Host, two of them and an unknown Expect are accepted", () =>
      Effect.gen(function* () {
        const { port } = yield* Running
        const ask = (head: string) =>
          rawHttp(port, (write) => write(`GET /healthz HTTP/1.1\r\n${head}\r\n`))
        for (const head of ["", "Host: a\r\nHost: b\r\n", "Host: a\r\nHOST: a\r\n"]) {
          assertProblem((yield* ask(head)).text, 400, 2014)
        }
        const { text } = yield* ask("Host: x\r\nExpect: tea\r\nConnection: close\r\n")
        assert.deepStrictEqual(
          rawResponses(text).map(({ json, status }) => [status, json]),
          [[200, { status: "ok" }]]
        )
        const old = yield* rawHttp(port, (write) => write("GET /healthz HTTP/1.0\r\n\r\n"))
        assert.match(old.text, /^HTTP\/1\.1 200 /u)
      })
    )

    it.effect("invalid bytes after whole requests do not change their responses", () =>
      Effect.gen(function* () {
        const { key, port } = yield* Running
        const task = "/vendors/alibaba/v1/text-to-image-max/generation"
        const made = yield* call(task, json({ prompt: "[[sim:slow=1s]]" }))
        const { task_info } = (yield* Effect.promise(() => made.json())) as {
          task_info: { id: string }
        }
        const get = (path: string, more = "") =>
          `GET ${path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${key}\r\n${more}\r\n`
        // The last request still waits for its task when the invalid bytes arrive
        const waiting = get(`${task}/${task_info.id}`, "Prefer: wait=30\r\n")
        for (const pieces of [
          [`${get("/healthz")}${get("/nothing")}${waiting}RUBBISH\r\n\r\n`],
          [get("/healthz"), get("/nothing"), waiting, "RUB", "BISH\r\n\r\n", get("/healthz")]
        ]) {
          const { text } = yield* rawHttp(port, (write) => pieces.forEach((piece) => write(piece)))
          const answers = rawResponses(text)
          assert.deepStrictEqual(
            answers.map(({ json, status }) => [status, json.code ?? json.task_info?.status]),
            [
              [200, undefined],
              [404, 2006],
              [200, "completed"],
              [400, 2014]
            ]
          )
          assert.strictEqual(answers.at(-1)?.headers.get("connection"), "close")
        }
      })
    )

    it.effect(
      "thousands of bad requests leave memory flat",
      () =>
        Effect.gen(function* () {
          const body = JSON.stringify({
            prompt: "a",
            images: Array.from({ length: 2000 }, () => "x")
          })
          const rounds = Effect.forEach(
            Array.from({ length: 500 }),
            () => Effect.flatMap(call(edit, json(body)), (it) => Effect.promise(() => it.text())),
            { concurrency: 20, discard: true }
          )
          yield* rounds
          const before = kept()
          yield* rounds
          yield* rounds
          yield* keepsLessThan(8 * megabyte, before)
        }),
      180_000
    )
  }
)
