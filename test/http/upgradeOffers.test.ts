import { assert } from "@effect/vitest"
import { Effect } from "effect"
import { liveLayer } from "../support/liveLayer.ts"
import { rawResponses, rawSequence } from "../support/rawHttp.ts"
import { Running, runningGateway } from "../support/running.ts"

/**
 * An offer to switch to another protocol may be ignored (RFC 9110, section 7.8): the request is served, including its
 * body, and its connection stays open. docs/reference/http.md#request-bodies
 */

/** What curl's `--http2` and Java's HttpClient send with their first request. */
const h2c = [
  "Connection: Upgrade, HTTP2-Settings",
  "Upgrade: h2c",
  "HTTP2-Settings: AAEAAEAAAAIAAAABAAMAAABkAAQBAAAAAAUAAEAA"
]

const create = "/vendors/alibaba/v1/text-to-image-max/generation?dry_run=true"
const chat = { model: "gpt-4o-mini", messages: [{ role: "user", content: "Hello" }] }

interface Sent {
  readonly key: string
  readonly path: string
  readonly body: unknown
  readonly headers: ReadonlyArray<string>
  readonly chunked?: boolean
}

const requestOf = ({ body, chunked, headers, key, path }: Sent): string => {
  const text = JSON.stringify(body)
  const framing = chunked === true ? "Transfer-Encoding: chunked" : `Content-Length: ${text.length}`
  const sent = chunked === true ? `${text.length.toString(16)}\r\n${text}\r\n0\r\n\r\n` : text
  return [
    `POST ${path} HTTP/1.1`,
    "Host: gateway",
    `Authorization: Bearer ${key}`,
    "Content-Type: application/json",
    framing,
    ...headers,
    "",
    sent
  ].join("\r\n")
}

liveLayer(runningGateway())("an offer to upgrade the protocol", (it) => {
  it.effect.each([
    ["a create", create, { prompt: "A lighthouse" }, false],
    ["a create in chunks", create, { prompt: "A lighthouse" }, true],
    ["a call", "/v1/chat/completions", chat, false],
    ["a call in chunks", "/v1/chat/completions", chat, true]
  ] as const)("is ignored on %s, twice on one connection", ([, path, body, chunked]) =>
    Effect.gen(function* () {
      const { key, port } = yield* Running
      const first = requestOf({ key, path, body, chunked, headers: h2c })
      const last = requestOf({ key, path, body, headers: ["Connection: close"] })
      const text = yield* rawSequence(port, [first, first, last])
      assert.deepStrictEqual(
        rawResponses(text).map(({ headers, status }) => [status, headers.get("connection")]),
        [
          [200, "keep-alive"],
          [200, "keep-alive"],
          [200, "close"]
        ],
        text
      )
    })
  )

  it.effect.each(["h2c", "TLS/1.2, HTTP/1.1"])("to %s is ignored on a GET", (protocol) =>
    Effect.gen(function* () {
      const { port } = yield* Running
      const get = (connection: string) =>
        `GET /healthz HTTP/1.1\r\nHost: gateway\r\nUpgrade: ${protocol}\r\nConnection: ${connection}\r\n\r\n`
      const text = yield* rawSequence(port, [get("Upgrade"), get("Upgrade, close")])
      assert.deepStrictEqual(
        rawResponses(text).map(({ status }) => status),
        [200, 200],
        text
      )
    })
  )

  /** RFC 9110, section 15.5.22, and RFC 6455, section 4.1. */
  const handshake = ["Connection: keep-alive, Upgrade", "Upgrade: WebSocket"]
  /** A proxy removes connection-specific headers. */
  const throughProxy = ["Connection: keep-alive", "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=="]
  const openAi = (type: string) => (json: Record<string, Record<string, unknown>>) =>
    assert.strictEqual(json["error"]?.["type"], type)
  const shapes = [
    ["/v1/responses", handshake, openAi("invalid_request_error")],
    ["/v1/responses", throughProxy, openAi("invalid_request_error")],
    ["/v1/realtime?model=gpt-4o", handshake, openAi("invalid_request_error")],
    [
      "/vendors/anthropic/v1/messages",
      handshake,
      (json: Record<string, unknown>) => assert.strictEqual(json["type"], "error")
    ],
    [
      "/vendors/google/v1beta/models",
      handshake,
      (json: Record<string, Record<string, unknown>>) =>
        assert.strictEqual(json["error"]?.["status"], "INVALID_ARGUMENT")
    ],
    ["/manage/v1/events", handshake, () => {}],
    ["/healthz", handshake, () => {}],
    ["/nowhere", throughProxy, () => {}]
  ] as const
  it.effect.each(shapes)(
    "by a WebSocket handshake to %s is refused with 426, which names HTTP/1.1",
    ([path, headers, check]) =>
      Effect.gen(function* () {
        const { port } = yield* Running
        const request = [`GET ${path} HTTP/1.1`, "Host: gateway", ...headers, "", ""].join("\r\n")
        const text = yield* rawSequence(port, [request])
        const [answer] = rawResponses(text)
        assert.strictEqual(answer?.status, 426, text)
        assert.strictEqual(answer?.headers.get("upgrade"), "HTTP/1.1")
        assert.strictEqual(answer?.headers.get("connection"), "Upgrade, close")
        assert.strictEqual(answer?.json.code, 2020)
        assert.match(answer?.json.detail, /WebSocket/u)
        check(answer?.json)
      })
  )

  it.effect("to WebSocket is ignored on a POST, and its body is served", () =>
    Effect.gen(function* () {
      const { key, port } = yield* Running
      const headers = ["Connection: Upgrade, close", "Upgrade: websocket"]
      const text = yield* rawSequence(port, [
        requestOf({ key, path: "/v1/chat/completions", body: chat, headers })
      ])
      assert.strictEqual(rawResponses(text)[0]?.status, 200, text)
    })
  )
})
