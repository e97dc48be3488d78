import { assert } from "@effect/vitest"
import { Effect } from "effect"
import { createHash } from "node:crypto"
import { liveLayer } from "../support/liveLayer.ts"
import { call, runningGateway } from "../support/running.ts"

const pageAt = (path: string) =>
  Effect.flatMap(call(path), (answer) =>
    Effect.promise(async () => ({ answer, html: await answer.text() }))
  )

const directivesOf = (policy: string | null): ReadonlyMap<string, ReadonlyArray<string>> =>
  new Map(
    (policy ?? "")
      .split(";")
      .map((part) => part.trim().split(/\s+/u))
      .map(([name = "", ...values]) => [name, values])
  )

const pages = ["/docs", "/docs/errors"]

liveLayer(runningGateway())("the pages of the documentation", (it) => {
  it.effect("the policy allows only the page itself and its own origin", () =>
    Effect.gen(function* () {
      for (const path of pages) {
        const { answer, html } = yield* pageAt(path)
        const policy = directivesOf(answer.headers.get("content-security-policy"))
        assert.deepStrictEqual(policy.get("default-src"), ["'none'"], path)
        assert.deepStrictEqual(policy.get("base-uri"), ["'none'"])
        assert.deepStrictEqual(policy.get("form-action"), ["'none'"])
        const sources = [...policy.values()].flat()
        const known = /^(?:'none'|'self'|data:|blob:|'unsafe-inline'|'sha256-[\w+/]{43}=')$/u
        for (const source of sources) assert.match(source, known)
        // A script may run only by its hash
        const scripts = [...html.matchAll(/<script>([\s\S]*?)<\/script>/gu)].map(
          ([, text = ""]) => `'sha256-${createHash("sha256").update(text).digest("base64")}'`
        )
        assert.notMatch(html, /<script[^>]+src/u)
        assert.deepStrictEqual(policy.get("script-src") ?? [], scripts)
        assert.notInclude(scripts.length === 0 ? "" : (scripts[0] ?? ""), "\r")
      }
    })
  )

  it.effect("pages may not be framed, and types may not be sniffed", () =>
    Effect.gen(function* () {
      for (const path of pages) {
        const { headers } = yield* call(path)
        const policy = directivesOf(headers.get("content-security-policy"))
        assert.deepStrictEqual(policy.get("frame-ancestors"), ["'none'"])
        assert.strictEqual(headers.get("x-frame-options"), "DENY")
        assert.strictEqual(headers.get("x-content-type-options"), "nosniff")
        assert.strictEqual(headers.get("referrer-policy"), "no-referrer")
      }
    })
  )

  it.effect("nothing on the page passes the document to a third party", () =>
    Effect.gen(function* () {
      const { html } = yield* pageAt("/docs")
      const config = html.slice(html.lastIndexOf("createApiReference"))
      assert.match(config, /"showDeveloperTools":"never"/u)
      assert.match(config, /"hideClientButton":true/u)
      assert.match(config, /"telemetry":false/u)
      assert.match(config, /"withDefaultFonts":false/u)
    })
  )

  it.effect("another method is 405 with Allow, and HEAD is GET without its body", () =>
    Effect.gen(function* () {
      for (const path of pages) {
        for (const method of ["POST", "PUT", "PATCH", "DELETE", "OPTIONS"]) {
          const answer = yield* call(path, { method })
          assert.strictEqual(answer.status, 405, `${method} ${path}`)
          assert.strictEqual(answer.headers.get("allow"), "GET, HEAD")
          const problem = yield* Effect.promise(() => answer.json())
          assert.strictEqual((problem as { readonly code: number }).code, 2007)
        }
        const head = yield* call(path, { method: "HEAD" })
        assert.strictEqual(head.status, 200)
        assert.strictEqual(yield* Effect.promise(() => head.text()), "")
      }
    })
  )
})
