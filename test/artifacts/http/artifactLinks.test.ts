import { NodeServices } from "@effect/platform-node"
import { PgClient } from "@effect/sql-pg"
import { assert, describe, it } from "@effect/vitest"
import { DateTime, Effect, FileSystem, Layer, Option } from "effect"
import { existsSync, readdirSync } from "node:fs"
import { join } from "node:path"
import S3rver from "s3rver"
import { Artifacts } from "../../../src/artifacts/Artifacts.ts"
import { makeTaskId } from "../../../src/domain/Ids.ts"
import { selectRange } from "../../../src/http/server/ByteRanges.ts"
import { liveLayer } from "../../support/liveLayer.ts"
import { call, finishedTask, Running, runningGateway } from "../../support/running.ts"

/** docs/reference/tasks.md#artifacts */

const bytes = Uint8Array.from({ length: 100_000 }, (_, index) => (index * 31) & 255)

const kept = Effect.gen(function* () {
  const artifacts = yield* Artifacts
  const { userId } = yield* Running
  return yield* artifacts.put({
    userId,
    taskId: makeTaskId(Date.now()),
    role: "output",
    mime: "video/mp4",
    bytes
  })
})

const urlOfKept = Effect.gen(function* () {
  const artifacts = yield* Artifacts
  return artifacts.urlOf(yield* kept)
})

/** Without a key, because the signed URL is the permission. */
const get = (url: string, headers: Record<string, string> = {}, method = "GET") =>
  Effect.promise(async () => {
    const answer = await fetch(url, { method, headers })
    return { answer, body: new Uint8Array(await answer.arrayBuffer()) }
  })

const bucketGateway = Layer.unwrap(
  Effect.gen(function* () {
    const files = yield* FileSystem.FileSystem
    const directory = yield* files.makeTempDirectoryScoped()
    const server = new S3rver({
      port: 0,
      address: "127.0.0.1",
      silent: true,
      directory,
      configureBuckets: [{ name: "media", configs: [] }]
    })
    const { port } = yield* Effect.acquireRelease(
      Effect.promise(() => server.run()),
      () => Effect.promise(() => server.close())
    )
    return runningGateway({
      ARTIFACT_STORE: "s3://media/some/prefix/",
      AWS_ENDPOINT_URL: `http://127.0.0.1:${port}`,
      AWS_ACCESS_KEY_ID: "S3RVER",
      AWS_SECRET_ACCESS_KEY: "S3RVER"
    })
  })
).pipe(Layer.provide(NodeServices.layer))

liveLayer(bucketGateway)("GET /artifacts/{id} of a bucket", (it) => {
  it.effect(
    "serves a result that is stored there, whole and in parts, and is 404 after its removal",
    () =>
      Effect.gen(function* () {
        const task = yield* finishedTask("/vendors/alibaba/v1/text-to-image-max/generation", {
          prompt: "a"
        })
        const url = task.images?.[0] ?? ""
        const whole = yield* get(url)
        assert.strictEqual(whole.answer.status, 200)
        assert.strictEqual(whole.answer.headers.get("content-length"), String(whole.body.length))
        const part = yield* get(url, { range: "bytes=10-99" })
        assert.strictEqual(part.answer.status, 206)
        assert.deepStrictEqual(part.body, whole.body.slice(10, 100))
        const row = yield* kept
        const artifacts = yield* Artifacts
        yield* artifacts.remove([row.id])
        assert.strictEqual((yield* get(artifacts.urlOf(row))).answer.status, 404)
      })
  )
})

describe("GET /artifacts/{id}", () => {
  liveLayer(runningGateway())((it) => {
    it.effect(
      "returns the image of a signed URL without a key, with type, ETag and sandbox headers",
      () =>
        Effect.gen(function* () {
          const task = yield* finishedTask("/vendors/alibaba/v1/text-to-image-max/generation", {
            prompt: "a"
          })
          const { answer, body } = yield* get(task.images?.[0] ?? "")
          assert.strictEqual(answer.status, 200)
          assert.strictEqual(answer.headers.get("content-type"), "image/png")
          assert.strictEqual(answer.headers.get("content-length"), String(body.length))
          assert.strictEqual(answer.headers.get("accept-ranges"), "bytes")
          assert.match(answer.headers.get("etag") ?? "", /^"[0-9a-f]{64}"$/)
          assert.match(answer.headers.get("content-security-policy") ?? "", /sandbox/)
          assert.strictEqual(answer.headers.get("x-content-type-options"), "nosniff")
          assert.match(answer.headers.get("traceparent") ?? "", /^00-/)
          assert.strictEqual(Buffer.from(body.subarray(1, 4)).toString(), "PNG")
        })
    )

    it.effect(
      "answers range requests for video: a part is 206, beyond the end is 416, several ranges are the whole",
      () =>
        Effect.gen(function* () {
          const url = yield* urlOfKept
          const part = Effect.fnUntraced(function* (range: string, start: number, end: number) {
            const { answer, body } = yield* get(url, { range })
            assert.strictEqual(answer.status, 206, range)
            assert.strictEqual(answer.headers.get("content-range"), `bytes ${start}-${end}/100000`)
            assert.strictEqual(answer.headers.get("content-length"), String(end - start + 1))
            assert.deepStrictEqual(body, bytes.slice(start, end + 1), range)
          })
          yield* part("bytes=0-0", 0, 0)
          yield* part("bytes=10-19", 10, 19)
          yield* part("bytes=99999-", 99_999, 99_999)
          yield* part("bytes=50000-200000", 50_000, 99_999)
          yield* part("bytes=-10", 99_990, 99_999)
          yield* part("bytes=-200000", 0, 99_999)
          for (const range of ["bytes=100000-", "bytes=-0"]) {
            const { answer, body } = yield* get(url, { range })
            assert.strictEqual(answer.status, 416, range)
            assert.strictEqual(answer.headers.get("content-range"), "bytes */100000")
            assert.strictEqual(JSON.parse(Buffer.from(body).toString()).code, 2013)
          }
          for (const range of ["bytes=0-1,5-6", "items=0-1", "bytes=5-1", "bytes=x", "bytes=-"]) {
            const { answer, body } = yield* get(url, { range })
            assert.strictEqual(answer.status, 200, range)
            assert.strictEqual(body.length, 100_000, range)
          }
        })
    )

    it.effect("follows RFC 9110 for If-Range, If-None-Match and HEAD", () =>
      Effect.gen(function* () {
        const url = yield* urlOfKept
        const { answer } = yield* get(url)
        const etag = answer.headers.get("etag") ?? ""
        const range = "bytes=0-9"
        const status = (headers: Record<string, string>, method?: string) =>
          Effect.map(get(url, headers, method), (it) => [it.answer.status, it.body.length])
        assert.deepStrictEqual(yield* status({ range, "if-range": etag }), [206, 10])
        assert.deepStrictEqual(yield* status({ range, "if-range": '"other"' }), [200, 100_000])
        assert.deepStrictEqual(yield* status({ "if-none-match": etag }), [304, 0])
        assert.deepStrictEqual(yield* status({ "if-none-match": `"a", W/${etag}` }), [304, 0])
        assert.deepStrictEqual(yield* status({ "if-none-match": '"a"' }), [200, 100_000])
        const head = yield* get(url, {}, "HEAD")
        assert.strictEqual(head.answer.status, 200)
        assert.strictEqual(head.answer.headers.get("content-length"), "100000")
        assert.strictEqual(head.answer.headers.get("content-type"), "video/mp4")
        assert.strictEqual(head.body.length, 0)
        assert.strictEqual((yield* get(url, {}, "POST")).answer.status, 405)
      })
    )

    it.effect("is 403 for an altered or expired URL, and 404 for a removed artifact", () =>
      Effect.gen(function* () {
        const artifacts = yield* Artifacts
        const row = yield* kept
        const url = new URL(artifacts.urlOf(row))
        const withQuery = (name: string, value: string) => {
          const other = new URL(url)
          other.searchParams.set(name, value)
          return other.href
        }
        const expires = Number(url.searchParams.get("expires"))
        for (const altered of [
          `${url.origin}${url.pathname}`,
          withQuery("expires", String(expires + 1)),
          withQuery("expires", ""),
          withQuery("signature", "é"),
          withQuery("signature", "0".repeat(64)),
          url.href.replace("art_0", "art_1")
        ]) {
          assert.strictEqual((yield* get(altered)).answer.status, 403, altered)
        }
        const past = DateTime.makeUnsafe(Date.now() - 1000)
        const expired = artifacts.urlOf({ ...row, expiresAt: past })
        assert.strictEqual((yield* get(expired)).answer.status, 403)
        assert.approximately(expires * 1000 - Date.now(), 24 * 3_600_000, 10_000)
        yield* artifacts.remove([row.id])
        assert.strictEqual((yield* get(url.href)).answer.status, 404)
        assert.strictEqual((yield* call("/artifacts/x")).status, 404)
      })
    )

    it.effect("has no bytes or rows of expired artifacts, and keeps all others", () =>
      Effect.gen(function* () {
        const artifacts = yield* Artifacts
        const sql = yield* PgClient.PgClient
        const { dataDir } = yield* Running
        const [old, young] = [yield* kept, yield* kept]
        yield* sql`UPDATE artifacts SET expires_at = ${new Date(Date.now() - 1000)} WHERE id = ${old.id}`
        yield* artifacts.removeExpired
        const fileOf = (id: string) => join(dataDir, "artifacts", id.slice(4, 11), id)
        assert.isTrue(Option.isNone(yield* artifacts.find(old.id)))
        assert.isFalse(existsSync(fileOf(old.id)))
        assert.isTrue(Option.isSome(yield* artifacts.find(young.id)))
        assert.isTrue(existsSync(fileOf(young.id)))
        const files = readdirSync(join(dataDir, "artifacts"), { recursive: true })
        assert.isFalse(files.some((name) => String(name).endsWith(".part")))
      })
    )
  })

  describe("selectRange", () => {
    it("finds no range in an empty medium", () => {
      assert.strictEqual(selectRange("bytes=0-", 0)._tag, "Unsatisfiable")
      assert.strictEqual(selectRange("bytes=-1", 0)._tag, "Unsatisfiable")
      assert.strictEqual(selectRange(undefined, 0)._tag, "Whole")
    })
  })
})
