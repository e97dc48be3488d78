import { assert } from "@effect/vitest"
import { Effect } from "effect"
import { liveLayer } from "../support/liveLayer.ts"
import { rawHttp } from "../support/rawHttp.ts"
import { call, json, Running, runningGateway } from "../support/running.ts"

/** A rule of a front proxy for a path must apply to every request that reaches its route. */

const id = "01a1fde7-442b-7260-8c58-eefab31afd40"
const create = "/vendors/alibaba/v1/text-to-image-max/generation"
const paths = [
  "/",
  "/healthz",
  "/readyz",
  "/metrics",
  "/openapi.json",
  "/docs",
  "/docs/errors",
  "/manage/v1/wallet",
  "/manage/v1/api-keys",
  `/manage/v1/tasks/${id}`,
  `/artifacts/art_${id}`,
  "/v1/chat/completions",
  "/v1/models",
  create,
  `${create}/${id}`,
  "/vendors/google/v1/image-edit-pro/edit"
]

const codeAt = (path: string, init: RequestInit = {}) =>
  Effect.flatMap(call(path, init), (answer) =>
    Effect.promise(async () => {
      const text = await answer.text()
      const isProblem = answer.headers.get("content-type") === "application/problem+json"
      return { status: answer.status, code: isProblem ? Number(JSON.parse(text).code) : undefined }
    })
  )

const initOf = (path: string): RequestInit =>
  /(?:completions|generation|edit)$/u.test(path) ? json({ prompt: "x" }) : {}

const encodedAt = (path: string, at: number): string =>
  `${path.slice(0, at)}%${path.charCodeAt(at).toString(16)}${path.slice(at + 1)}`

/** Positions of the literal segments: ids are parameters. */
const lettersOf = (path: string): ReadonlyArray<number> =>
  [...path.replace(id, "/".repeat(id.length)).matchAll(/[a-z]/gu)].map(({ index }) => index)

const variants: Record<string, (path: string) => ReadonlyArray<string>> = {
  "another case": (path) =>
    lettersOf(path).map(
      (at) => `${path.slice(0, at)}${path[at]!.toUpperCase()}${path.slice(at + 1)}`
    ),
  "a doubled slash": (path) =>
    [...path.matchAll(/\//gu)].map(({ index }) => `${path.slice(0, index)}/${path.slice(index)}`),
  "a slash at the end": (path) => (path === "/" ? [] : [`${path}/`]),
  "a semicolon": (path) => [`${path};`, `${path};a=b`, `${path};/x`],
  "an encoded letter": (path) => lettersOf(path).map((at) => encodedAt(path, at))
}

liveLayer(runningGateway())("exact paths", (it) => {
  for (const [what, make] of Object.entries(variants)) {
    it.effect(
      `${what} is a different path: 404`,
      () =>
        Effect.gen(function* () {
          const wrong: Array<string> = []
          for (const path of paths) {
            for (const variant of make(path)) {
              const { code, status } = yield* codeAt(variant, initOf(path))
              // Another id is another resource
              const isNone = code === 2006 || (code === 2005 && path.includes(id))
              if (status !== 404 || !isNone) wrong.push(`${variant} ${status} ${code}`)
            }
          }
          assert.deepStrictEqual(wrong, [])
        }),
      180_000
    )
  }

  it.effect("the paths themselves have their routes", () =>
    Effect.gen(function* () {
      for (const path of paths) {
        const { code } = yield* codeAt(path, initOf(path))
        assert.notStrictEqual(code, 2006, path)
      }
    })
  )

  it.effect("a path in a whole URL (RFC 9112, 3.2.2) is treated in the same way", () =>
    Effect.gen(function* () {
      const { port } = yield* Running
      for (const [path, status] of [
        ["/healthz", 200],
        ["/%68ealthz", 404],
        ["/healthz;", 404]
      ] as const) {
        const { text } = yield* rawHttp(port, (write) =>
          write(`GET http://h${path} HTTP/1.1\r\nhost: h\r\nconnection: close\r\n\r\n`)
        )
        assert.isTrue(text.startsWith(`HTTP/1.1 ${status} `), `${path} ${text}`)
      }
    })
  )

  it.effect("a query is not part of the path", () =>
    Effect.gen(function* () {
      assert.strictEqual((yield* codeAt("/manage/v1/wallet?x=a;b//c%61")).code, 2001)
    })
  )

  it.effect("an encoded letter in the tail of a passthrough path is the letter", () =>
    Effect.gen(function* () {
      const body = json({ contents: [{ parts: [{ text: "hello" }] }] })
      const model = "/vendors/google/v1beta/models/gemini-2.5-flash"
      assert.strictEqual((yield* codeAt(`${model}:generateContent`, body)).status, 200)
      assert.strictEqual((yield* codeAt(`${model}%3AgenerateContent`, body)).status, 200)
      assert.strictEqual((yield* codeAt(`${model}:gener%61teContent`, body)).status, 200)
      assert.strictEqual((yield* codeAt("/v1/models/gpt%2D4o")).status, 200)
    })
  )
})
