import { assert, describe, layer } from "@effect/vitest"
import { Effect } from "effect"
import { rawResponses, rawSequence } from "../support/rawHttp.ts"
import { Running, runningGateway } from "../support/running.ts"

/**
 * An offer to switch to another protocol may be ignored (RFC 9110, section 7.8): the request is
 * served, its body included, and its connection stays open. docs/reference/http.md#request-bodies
 */

/** What curl's `--http2` and the HttpClient of Java send with their first request. */
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

describe("an offer to upgrade the protocol", () => {
  layer(runningGateway(), { excludeTestServices: true })((it) => {
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

    it.effect.each(["websocket", "h2c", "TLS/1.2, HTTP/1.1"])(
      "to %s is ignored on a GET",
      (protocol) =>
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
  })
})
