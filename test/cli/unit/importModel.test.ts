import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { readFileSync, writeFileSync } from "node:fs"
import type { IncomingMessage } from "node:http"
import { join } from "node:path"
import { runCommand, withEnvironment } from "../../support/commandLine.ts"
import { localServer } from "../../support/localServer.ts"
import { falImages, replicateCaption, replicateImages } from "../../support/publishedModels.ts"
import { temporaryFolder } from "../../support/temporaryFolder.ts"

/** docs/vendors-as-files.md#import-a-model */

const folder = Effect.sync(() => temporaryFolder("import-model"))

interface Reply {
  readonly status?: number
  readonly text: string
  readonly headers?: Record<string, string>
}

const of = (document: unknown): Reply => ({ text: JSON.stringify(document) })

/** A local server of schemas, by path, that records the requests. */
const serving = (replies: Readonly<Record<string, Reply>>) =>
  Effect.gen(function* () {
    const asked: Array<IncomingMessage> = []
    const url = yield* localServer((request, response) => {
      asked.push(request)
      const {
        headers = {},
        status = 200,
        text
      } = replies[request.url ?? ""] ?? {
        status: 404,
        text: '{"detail":"Not found"}'
      }
      response.writeHead(status, headers).end(text)
    })
    return { asked, url }
  })

const local = { BASE_URL: "http://localhost:8080", EGRESS_ALLOW: "127.0.0.1" }

const run = (...args: ReadonlyArray<string>) => runCommand(["models", "import", ...args, "--json"])

describe("gateway models import", () => {
  it.live("adds a row without a price, which catalog check then requires by its pointer", () =>
    Effect.gen(function* () {
      const place = yield* folder
      const path = join(place, "catalog.json")
      yield* withEnvironment({ ...local, DATA_DIR: place })
      const { url } = yield* serving({ "/schema": of(falImages) })
      const made = yield* run(
        "fal",
        "acme-ai/brush/edit",
        "--from",
        `${url}/schema`,
        "--file",
        path
      )
      assert.strictEqual(made.code, 0, made.error)
      const { missing, model, row } = JSON.parse(made.out)
      assert.deepStrictEqual([model, missing], ["fal/brush-edit", "#/mediaModels/0/price"])
      assert.strictEqual(row.upstreamModel, "acme-ai/brush/edit")
      assert.include(made.error, "sync_mode is left out")

      const refused = yield* runCommand(["catalog", "check", path])
      assert.strictEqual(refused.code, 1)
      assert.include(refused.error, "#/mediaModels/0/price: Required, but missing")
      const file = JSON.parse(readFileSync(path, "utf8"))
      file.mediaModels[0].price = { per: "expression", hold: "body.num_images * 4000000" }
      writeFileSync(path, JSON.stringify(file))
      const accepted = yield* runCommand(["catalog", "check", path])
      assert.strictEqual(accepted.code, 0, accepted.error)

      const args = ["fal", "acme-ai/brush/edit", "--from", `${url}/schema`, "--file", path] as const
      const again = yield* run(...args)
      assert.include(again.error, "has the model fal/brush-edit")
      const other = yield* run(...args, "--model", "brush")
      assert.strictEqual(JSON.parse(other.out).missing, "#/mediaModels/1/price")
    }).pipe(Effect.scoped)
  )

  it.live(
    "reads a model of Replicate with the account's key, and sends the key to no other host",
    () =>
      Effect.gen(function* () {
        const place = yield* folder
        const path = join(place, "catalog.json")
        writeFileSync(path, JSON.stringify({ remove: ["image-edit"] }))
        const { asked, url } = yield* serving({
          "/v1/models/black-forest-labs/flux-schnell": of(replicateImages),
          "/v1/models/acme/secret": { status: 401, text: "{}" },
          "/elsewhere": of(replicateCaption)
        })
        yield* withEnvironment({
          ...local,
          DATA_DIR: place,
          REPLICATE_API_KEY: "r8_test_key_0001",
          REPLICATE_BASE_URL: url
        })
        const made = yield* run("replicate", "black-forest-labs/flux-schnell", "--file", path)
        assert.strictEqual(made.code, 0, made.error)
        assert.strictEqual(asked[0]?.headers.authorization, "Bearer r8_test_key_0001")
        const file = JSON.parse(readFileSync(path, "utf8"))
        assert.deepStrictEqual(file.remove, ["image-edit"])
        assert.strictEqual(file.mediaModels[0].model, "flux-schnell")
        assert.notInclude(made.out + made.error, "r8_test_key_0001")

        const elsewhere = ["--from", `${url}/elsewhere`, "--file", path] as const
        assert.strictEqual((yield* run("replicate", "acme/model", ...elsewhere)).code, 0)
        assert.isUndefined(asked[1]?.headers.authorization)
        const secret = yield* run("replicate", "acme/secret", "--file", path)
        assert.include(secret.error, "refuses the key")
        const unknown = yield* run("replicate", "acme/none", "--file", path)
        assert.include(unknown.error, "has no such model: acme/none")
      }).pipe(Effect.scoped)
  )

  it.live("says why it cannot import, and leaves the file unchanged", () =>
    Effect.gen(function* () {
      const place = yield* folder
      const path = join(place, "catalog.json")
      const { asked, url } = yield* serving({
        "/text": { text: "<html>" },
        "/empty": of({}),
        "/large": { text: `"${"x".repeat(4 * 1024 * 1024)}"` },
        "/deep": { text: "[".repeat(100_000) + "]".repeat(100_000) },
        "/away": { status: 302, text: "", headers: { location: "/empty" } },
        "/broken": { status: 500, text: "" }
      })
      yield* withEnvironment({ ...local, DATA_DIR: place })
      const faultOf = (at: string) =>
        Effect.map(run("fal", "a/b", "--from", `${url}${at}`, "--file", path), (ran) => {
          assert.strictEqual(ran.code, 1, at)
          return ran.error
        })
      assert.include(yield* faultOf("/text"), "is not JSON")
      assert.include(yield* faultOf("/empty"), "no request that submits a job")
      assert.include(yield* faultOf("/large"), "larger than")
      assert.include(yield* faultOf("/deep"), "no request that submits a job")
      assert.include(yield* faultOf("/away"), "HTTP 302")
      assert.include(yield* faultOf("/broken"), "HTTP 500")
      assert.include(yield* faultOf("/none"), "has no such model")
      assert.include((yield* run("fal", "../x", "--file", path)).error, "is not a model id of fal")
      assert.include((yield* run("replicate", "a/b/c")).error, "is not a model id of replicate")
      assert.include(
        (yield* run("replicate", "a/b", "--file", path)).error,
        "Set REPLICATE_API_KEY"
      )
      assert.include(
        (yield* run("fal", "a/b", "--from", "file:///etc/passwd")).error,
        "not an http"
      )
      const before = asked.length
      yield* withEnvironment({ EGRESS_ALLOW: "" })
      const guarded = yield* run("fal", "a/b", "--from", `${url}/empty`, "--file", path)
      assert.include(guarded.error, "cannot be read from 127.0.0.1")
      assert.strictEqual(asked.length, before)
      assert.throws(() => readFileSync(path), /ENOENT/u)
      writeFileSync(path, "[1]")
      const odd = yield* serving({ "/schema": of(falImages) })
      const args = ["fal", "a/b", "--from", `${odd.url}/schema`, "--file", path] as const
      yield* withEnvironment({ EGRESS_ALLOW: "127.0.0.1" })
      assert.include((yield* run(...args)).error, "is not a catalog file")
      assert.strictEqual(readFileSync(path, "utf8"), "[1]")
    }).pipe(Effect.scoped)
  )
})
