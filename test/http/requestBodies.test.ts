import { assert } from "@effect/vitest"
import { Effect } from "effect"
import { jsonDepthMax } from "../../src/domain/json/JsonLimits.ts"
import { formPartsMax } from "../../src/domain/limits/ShapeLimits.ts"
import { adminToken } from "../support/gateway.ts"
import { liveLayer } from "../support/liveLayer.ts"
import { rawHttp } from "../support/rawHttp.ts"
import { call, json, read, Running, runningGateway } from "../support/running.ts"

/** docs/reference/http.md#request-bodies */

const create = "/vendors/alibaba/v1/text-to-image-max/generation"
const message = { model: "gpt-4o", max_tokens: 5, messages: [{ role: "user", content: "Hi" }] }
const claude = { ...message, model: "claude-sonnet-4-5" }
/** Routes of every kind, with a body and the status of its response. */
const routes = [
  [`${create}?dry_run=true`, { prompt: "x" }, 200],
  [create, { prompt: "x" }, 202],
  ["/manage/v1/api-keys", { name: "a" }, 201],
  ["/v1/chat/completions", message, 200],
  ["/vendors/openai/v1/embeddings", { model: "text-embedding-3-small", input: "x" }, 200],
  ["/vendors/anthropic/v1/messages", claude, 200],
  ["/vendors/anthropic/v1/messages/count_tokens", claude, 200],
  [
    "/vendors/google/v1beta/models/gemini-2.5-flash:generateContent",
    { contents: [{ parts: [{ text: "Hi" }] }] },
    200
  ]
] as const

const mebi = 1024 * 1024
const announced = 127 * mebi

/** The beginning of a body of 127 MiB whose rest never comes. */
const bombs = {
  objects: "{},".repeat(mebi / 2),
  keys: `{${'"a":1,'.repeat(mebi / 4)}`,
  levels: "[".repeat(mebi)
}

const part = '--b\r\nContent-Disposition: form-data; name="a"\r\n\r\n\r\n'

liveLayer(runningGateway())("request bodies", (it) => {
  const send = (path: string, type: string, body: string) =>
    read(path, {
      method: "POST",
      headers: { authorization: `Bearer ${adminToken}`, "content-type": type },
      body
    })

  it.effect("are JSON on every route if their type ends in +json", () =>
    Effect.gen(function* () {
      const { key, userId } = yield* Running
      const bodies = {
        [`/manage/v1/users/${userId}/top-ups`]: [{ amount: "1.00" }, 201],
        "/manage/v1/session": [{ api_key: key }, 200]
      } as const
      for (const [path, [body, status]] of Object.entries(bodies)) {
        const sent = yield* send(path, "application/vnd.example+json", JSON.stringify(body))
        assert.strictEqual(sent.status, status, sent.text)
      }
    })
  )

  it.effect("of a refused type are answered with a problem, even if the body may be left out", () =>
    Effect.gen(function* () {
      const made = yield* read("/manage/v1/api-keys", json({ name: "other" }))
      const path = `/manage/v1/api-keys/${made.json.id}/rotate`
      for (const type of ["text/plain;charset=UTF-8", "application/x-www-form-urlencoded"]) {
        const refused = yield* send(path, type, "{}")
        assert.strictEqual(refused.status, 415)
        assert.strictEqual(refused.headers.get("content-type"), "application/problem+json")
        // As `fetch` sends an empty text
        const sent = yield* send(path, type, "")
        assert.strictEqual(sent.status, 200, sent.text)
      }
    })
  )

  it.effect(
    "are refused for the field with a wrong value, even if the value is nested as deeply as allowed",
    () =>
      Effect.gen(function* () {
        const levels = jsonDepthMax - 1
        const deep = "[".repeat(levels) + "]".repeat(levels)
        const nested = '{"filter":'.repeat(levels) + "1" + "}".repeat(levels)
        const { userId } = yield* Running
        for (const [path, body, pointer] of [
          ["webhook-deliveries/redeliver", `{"filter":${deep}}`, "#/filter"],
          ["webhook-deliveries/redeliver", nested, "#/filter/filter"],
          [`users/${userId}/top-ups`, `{"amount":${deep}}`, "#/amount"]
        ] as const) {
          const { status, text } = yield* send(`/manage/v1/${path}`, "application/json", body)
          assert.deepStrictEqual(
            [status, JSON.parse(text).errors?.[0].pointer],
            [400, pointer],
            path
          )
        }
      })
  )

  for (const [path, body, status] of routes) {
    it.effect(`may begin with a byte order mark, which is skipped: ${path}`, () =>
      Effect.gen(function* () {
        const text = JSON.stringify(body)
        // Below a vendor, bodies of unmetered requests are not parsed here
        const second = path.endsWith("count_tokens") ? status : 400
        for (const [sent, expected] of [
          [text, status],
          [`\ufeff${text}`, status],
          [`\ufeff\ufeff${text}`, second]
        ] as const) {
          const answer = yield* call(path, json(sent))
          const received = yield* Effect.promise(() => answer.text())
          assert.strictEqual(answer.status, expected, received)
        }
      })
    )
  }

  const refused = Effect.fnUntraced(function* (path: string, type: string, body: string) {
    const { key, port } = yield* Running
    // The gateway closes the connection and waits for nothing more
    const { text } = yield* rawHttp(port, (write) =>
      write(
        `POST ${path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${key}\r\n` +
          `Content-Type: ${type}\r\nContent-Length: ${announced}\r\n\r\n${body}`
      )
    )
    assert.match(text, /^HTTP\/1\.1 400 /u, text.slice(0, 300))
    assert.match(text, /^connection: close\r$/imu)
    return text
  })

  it.effect.each([
    "/v1/chat/completions",
    "/vendors/openai/v1/embeddings",
    "/vendors/alibaba/v1/text-to-image-max/generation",
    "/vendors/alibaba/v1/text-to-image-max/generation?dry_run=true",
    "/v1/images/generations",
    "/v1/videos",
    "/manage/v1/api-keys",
    "/mcp"
  ])(
    "are refused before they have arrived if they would block the process for long: %s",
    (path) =>
      Effect.gen(function* () {
        for (const [name, body] of Object.entries(bombs)) {
          const text = yield* refused(path, "application/json", `[${body}`)
          assert.match(text, path === "/mcp" ? /-32700/u : /"code":2002/u, name)
          assert.match(text, /too (?:complex|deeply)|too deeply/u, name)
        }
      }),
    60_000
  )

  it.effect("are refused if they are forms of too many parts", () =>
    Effect.gen(function* () {
      for (const path of ["/v1/images/edits", "/v1/videos"]) {
        const text = yield* refused(path, "multipart/form-data; boundary=b", part.repeat(1000))
        assert.include(text, `The form has more than ${formPartsMax} parts`)
      }
    })
  )

  it.effect("may arrive in any pieces, after 100 Continue or without a length", () =>
    Effect.gen(function* () {
      const { key, port } = yield* Running
      const body = JSON.stringify({ prompt: "a".repeat(600) })
      const head = (more: string) =>
        `POST /vendors/alibaba/v1/text-to-image-max/generation?dry_run=true HTTP/1.1\r\nHost: x\r\n` +
        `Authorization: Bearer ${key}\r\nContent-Type: application/json\r\nConnection: close\r\n${more}\r\n\r\n`
      const chunked = [...body].map((it) => `1\r\n${it}\r\n`).join("")
      for (const sent of [
        `${head(`Content-Length: ${body.length}`)}${body}`,
        `${head("Transfer-Encoding: chunked")}${chunked}0\r\n\r\n`,
        `${head(`Expect: 100-continue\r\nContent-Length: ${body.length}`)}${body}`
      ]) {
        const { text } = yield* rawHttp(port, (write) => write(sent))
        assert.match(text, /HTTP\/1\.1 200 /u, text)
        assert.strictEqual(text.includes("100 Continue"), sent.includes("100-continue"))
      }
    })
  )

  it.effect("are refused for a form field with a number that JSON does not know", () =>
    Effect.gen(function* () {
      for (const n of ["01", "-0", "1e3", "+1", "0x1", "1.5", " 1", "NaN"]) {
        const form = new FormData()
        form.set("model", "text-to-image-max")
        form.set("prompt", "a")
        form.set("n", n)
        form.set("seed", n)
        const answer = yield* call("/v1/images/generations", { method: "POST", body: form })
        const { code, errors } = JSON.parse(yield* Effect.promise(() => answer.text()))
        assert.deepStrictEqual([answer.status, code], [400, 2001], n)
        const pointers = errors.map(({ pointer }: { pointer: string }) => pointer)
        assert.includeMembers(pointers, ["#/n", "#/seed"], n)
      }
    })
  )
})
