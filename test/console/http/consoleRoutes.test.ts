import { assert, describe } from "@effect/vitest"
import { Effect } from "effect"
import { once } from "node:events"
import { readdirSync, readFileSync } from "node:fs"
import { get } from "node:http"
import type { IncomingMessage } from "node:http"
import { join } from "node:path"
import { brotliDecompressSync, gunzipSync } from "node:zlib"
import { liveLayer } from "../../support/liveLayer.ts"
import { call, Running, runningGateway } from "../../support/running.ts"

const folder = join(import.meta.dirname, "../../../src/http/console/dist")
const script = readdirSync(folder).find((name) => /^console-.*\.js$/u.test(name)) ?? ""

const policy =
  "default-src 'none'; script-src 'self'; style-src 'self'; font-src 'self'; img-src 'self' data: blob:; media-src 'self' blob:; connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"

const textAt = (path: string, init: RequestInit = {}) =>
  Effect.flatMap(call(path, init), (answer) =>
    Effect.promise(async () => ({ answer, text: await answer.text() }))
  )

const redirectOf = (path: string, accept: string) =>
  Effect.map(call(path, { redirect: "manual", headers: { accept } }), (answer) => [
    answer.status,
    answer.headers.get("location")
  ])

/** The body as sent, without decompression. */
const bytesAt = async (port: number, path: string, accepted: string) => {
  const request = get({ host: "127.0.0.1", port, path, headers: { "accept-encoding": accepted } })
  const [response] = (await once(request, "response")) as [IncomingMessage]
  const chunks: Array<Buffer> = []
  for await (const chunk of response) chunks.push(chunk)
  const { headers, statusCode } = response
  return { body: Buffer.concat(chunks), headers, statusCode }
}

const assertHardened = (headers: Headers) => {
  assert.strictEqual(headers.get("content-security-policy"), policy)
  assert.strictEqual(headers.get("x-content-type-options"), "nosniff")
  assert.strictEqual(headers.get("x-frame-options"), "DENY")
  assert.strictEqual(headers.get("referrer-policy"), "no-referrer")
}

describe("the console", () => {
  liveLayer(runningGateway())((it) => {
    it.effect("serves its page for every path below /console, with its policy and no-cache", () =>
      Effect.gen(function* () {
        const page = readFileSync(join(folder, "index.html"), "utf8")
        for (const path of [
          "/console",
          "/console/tasks",
          "/console/tasks/1?a=b",
          "/console/x/y/z"
        ]) {
          const { answer, text } = yield* textAt(path)
          assert.deepStrictEqual([answer.status, text], [200, page], path)
          assert.strictEqual(answer.headers.get("content-type"), "text/html; charset=utf-8")
          assert.strictEqual(answer.headers.get("cache-control"), "no-cache")
          assertHardened(answer.headers)
        }
        const head = yield* textAt("/console", { method: "HEAD" })
        assert.deepStrictEqual([head.answer.status, head.text], [200, ""])
        const posted = yield* call("/console/tasks", { method: "POST" })
        assert.deepStrictEqual([posted.status, posted.headers.get("allow")], [405, "GET, HEAD"])
      })
    )

    it.effect("serves immutable files in the smallest encoding that the client accepts", () =>
      Effect.gen(function* () {
        const { port } = yield* Running
        const content = readFileSync(join(folder, script), "utf8")
        for (const [accepted, encoding, unpack] of [
          ["gzip, deflate, br", "br", brotliDecompressSync],
          ["gzip;q=0.5, br;q=0", "gzip", gunzipSync],
          ["identity", undefined, (bytes: Buffer) => bytes]
        ] as const) {
          const { body, headers, statusCode } = yield* Effect.promise(() =>
            bytesAt(port, `/console/assets/${script}`, accepted)
          )
          assert.strictEqual(statusCode, 200)
          assert.strictEqual(headers["content-encoding"], encoding)
          assert.strictEqual(unpack(body).toString(), content)
          assert.strictEqual(headers["content-type"], "text/javascript; charset=utf-8")
          assert.strictEqual(headers["cache-control"], "public, max-age=31536000, immutable")
          assert.strictEqual(headers["vary"], "accept-encoding")
        }
        const { answer } = yield* textAt(`/console/assets/${script}`)
        assertHardened(answer.headers)
      })
    )

    it.effect("returns 404 for a file that does not exist or is not part of the build", () =>
      Effect.gen(function* () {
        for (const name of ["old-AAAAAAAA.js", "index.html", `${script}.br`, "..%2findex.html"]) {
          const { answer, text } = yield* textAt(`/console/assets/${name}`)
          assert.deepStrictEqual([answer.status, JSON.parse(text).code], [404, 2006], name)
        }
      })
    )

    it.effect("redirects /, paths with a trailing slash and sign-in links to its pages", () =>
      Effect.gen(function* () {
        const browser = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"
        for (const accept of [browser, "*/*", "application/json"]) {
          assert.deepStrictEqual(yield* redirectOf("/", accept), [302, "/console"], accept)
          assert.deepStrictEqual(yield* redirectOf("/console/", accept), [308, "/console"], accept)
        }
        const page = yield* redirectOf("/console/tasks/?status=failed", browser)
        assert.deepStrictEqual(page, [308, "/console/tasks?status=failed"])
        assert.deepStrictEqual(yield* redirectOf("/sign-in", browser), [302, "/console/sign-in"])
        for (const path of ["/console//", "/console/x;/", "/console//evil.example/"]) {
          assert.strictEqual((yield* redirectOf(path, browser))[0], 404, path)
        }
      })
    )

    it.effect("gets what its sign-in page needs from GET /service without a session", () =>
      Effect.gen(function* () {
        const { answer, text } = yield* textAt("/manage/v1/service")
        assert.strictEqual(answer.status, 200)
        assert.deepStrictEqual(JSON.parse(text), {
          name: "Service",
          sandbox: true,
          oidc: false,
          passkeys: false,
          top_up_url: null
        })
        const { text: refused } = yield* textAt("/manage/v1/service?x=1")
        assert.strictEqual(JSON.parse(refused).code, 2001)
      })
    )
  })

  liveLayer(runningGateway({ BASE_URL: "https://ai.example.com/gateway" }))(
    "behind a proxy that adds a path prefix",
    (it) => {
      it.effect("references its files below that prefix", () =>
        Effect.gen(function* () {
          const { text } = yield* textAt("/console")
          assert.include(text, `src="/gateway/console/assets/${script}"`)
          assert.notMatch(text, /="\/console/u)
          assert.deepStrictEqual(yield* redirectOf("/", "text/html"), [302, "/gateway/console"])
        })
      )
    }
  )
})
