import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Schedule } from "effect"
import { SqlClient } from "effect/sql"
import { createHash } from "node:crypto"
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { beforeEach } from "vitest"
import { dashscope } from "../../../src/testing/vendors/DashScopeProtocol.ts"
import { openai } from "../../../src/testing/vendors/OpenAiProtocol.ts"
import { GatewayProcess } from "../../support/gatewayProcess.ts"
import { liveLayer } from "../../support/liveLayer.ts"
import { jpeg } from "../../support/media.ts"
import { upstreamOfTests } from "../../support/mockVendors.ts"
import { call, finishedTask, json, Running, runningGateway } from "../../support/running.ts"
import { temporaryFolder } from "../../support/temporaryFolder.ts"
import { until } from "../../support/until.ts"
import { pixel, Upstream } from "../../support/upstreams/Upstream.ts"

const preview = "/vendors/alibaba/v1/text-to-image-preview/generation"
const video = "/vendors/service/v1/text-to-video-spark/generation"
const prompt = { prompt: "A lighthouse", n: 1 }

const folder = temporaryFolder("copies")
const catalog = join(folder, "catalog.json")
writeFileSync(
  catalog,
  JSON.stringify({
    change: { "text-to-video-spark": { adapter: "openai-video", upstreamModel: "sora-2" } }
  })
)

/** The beginning of an MP4 file. */
const mp4Head = Buffer.concat([Buffer.from([0, 0, 0, 24]), Buffer.from("ftypisom"), pixel])

const filesIn = (directory: string): ReadonlyArray<string> =>
  existsSync(directory)
    ? readdirSync(directory, { recursive: true, withFileTypes: true })
        .filter((it) => it.isFile())
        .map((it) => join(it.parentPath, it.name))
    : []

const upstream = await upstreamOfTests(Upstream.start(dashscope))

describe("the copy of a vendor's result", () => {
  beforeEach(() => {
    upstream.runningPolls = 0
  })

  const gateway = Layer.unwrap(
    Effect.sync(() =>
      runningGateway({ DASHSCOPE_API_KEY: upstream.key, DASHSCOPE_BASE_URL: upstream.url })
    )
  )
  const wallet = Effect.flatMap(call("/manage/v1/wallet"), (got) =>
    Effect.promise(() => got.json() as Promise<object>)
  )
  const kept = Effect.map(Running, ({ dataDir }) => filesIn(join(dataDir, "artifacts")))
  const rows = Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    return (yield* sql`SELECT 1 FROM artifacts`).length
  })
  const counts = Effect.gen(function* () {
    return { files: (yield* kept).length, rows: yield* rows }
  })
  /** The number of new files and rows. */
  const keptSince = Effect.map(counts, (before) =>
    Effect.map(counts, (after) => ({
      files: after.files - before.files,
      rows: after.rows - before.rows
    }))
  )

  liveLayer(gateway)((it) => {
    it.effect("is whole and has the result's type, with or without Content-Length", () =>
      Effect.gen(function* () {
        const head = Buffer.from(jpeg())
        for (const isChunked of [false, true]) {
          upstream.media = { head, size: 1_000_000, isChunked, type: "image/png" }
          const task = yield* finishedTask(preview, prompt)
          const got = yield* call(task.images?.[0] ?? "")
          assert.strictEqual(got.headers.get("content-type"), "image/jpeg")
          const bytes = Buffer.from(yield* Effect.promise(() => got.arrayBuffer()))
          assert.isTrue(bytes.equals(Buffer.concat([head, Buffer.alloc(1_000_000 - head.length)])))
          const sha256 = createHash("sha256").update(bytes).digest("hex")
          assert.strictEqual(got.headers.get("etag"), `"${sha256}"`)
        }
      })
    )

    it.effect("starts again if the download breaks off, and the first part is removed", () =>
      Effect.gen(function* () {
        const since = yield* keptSince
        upstream.media = { head: pixel, size: 1_000_000, breaks: [600_000] }
        const task = yield* finishedTask(preview, prompt)
        const got = yield* call(task.images?.[0] ?? "")
        assert.strictEqual((yield* Effect.promise(() => got.arrayBuffer())).byteLength, 1_000_000)
        assert.deepStrictEqual(yield* since, { files: 1, rows: 1 })
      })
    )

    it.effect("fails with 3004 for an error page, and nothing is stored or charged", () =>
      Effect.gen(function* () {
        const since = yield* keptSince
        const before = yield* wallet
        upstream.media = { head: Buffer.from("<!doctype html><title>Oops</title>") }
        const task = yield* finishedTask(preview, prompt)
        assert.deepInclude(task.task_info.error, {
          code: 3004,
          detail: "The result could not be copied: its host sent something else"
        })
        assert.deepStrictEqual(yield* wallet, before)
        assert.deepStrictEqual(yield* since, { files: 0, rows: 0 })
      })
    )

    it.effect("stops at once when its task is cancelled", () =>
      Effect.gen(function* () {
        const since = yield* keptSince
        upstream.media = { head: pixel, size: 1_000_000, breaks: [600_000], isHanging: true }
        const created = yield* call(preview, json(prompt))
        const { task_info } = (yield* Effect.promise(() => created.json())) as {
          task_info: { id: string }
        }
        yield* waitFor(Effect.map(since, ({ files }) => files === 1))
        const cancelled = yield* call(`${preview}/${task_info.id}`, { method: "DELETE" })
        assert.strictEqual(cancelled.status, 200)
        yield* waitFor(Effect.map(since, ({ files, rows }) => files === 0 && rows === 0))
      })
    )
  })
})

/** Waits in real time for at most 10 seconds, which is less than any timeout of the service. */
const waitFor = <E, R>(isThere: Effect.Effect<boolean, E, R>) =>
  Effect.repeat(isThere, { until: (it) => it, schedule: Schedule.spaced(20), times: 500 }).pipe(
    Effect.map((there) => assert.isTrue(there))
  )

describe("a result of 200 MB", () => {
  const size = 200 * 1024 * 1024
  /** Additional memory that the process may use: far less than the result. */
  const growthMax = 100 * 1024 * 1024

  const residentBytes = (pid: number | undefined): number =>
    1024 *
    Number(/^VmRSS:\s+(\d+) kB/mu.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1] ?? 0)

  it("is copied and served in ranges with little memory", async () => {
    await using upstream = await disposable(Upstream.start(openai))
    upstream.it.runningPolls = 0
    await using gateway = await GatewayProcess.start({
      env: {
        CATALOG_FILE: catalog,
        OPENAI_API_KEY: upstream.it.key,
        OPENAI_BASE_URL: `${upstream.it.url}/v1`
      }
    })
    const ended = async () => {
      const created = await gateway.call("POST", video, { prompt: "A lighthouse" })
      return until(
        async () => {
          peak = Math.max(peak, residentBytes(gateway.pid))
          const task = await gateway.call("GET", `${video}/${created.json.task_info.id}`)
          return /completed|failed/u.test(task.json.task_info.status) ? task : undefined
        },
        { millis: 300_000 }
      )
    }
    let peak = 0
    upstream.it.media = { head: mp4Head }
    await ended()
    const before = residentBytes(gateway.pid)
    peak = 0
    upstream.it.media = { head: mp4Head, size, isChunked: true }
    const task = await ended()
    assert.strictEqual(task.json.task_info.status, "completed", task.text)
    assert.isAbove(upstream.it.mediaBytesSent, size)

    const [url] = task.json.videos
    const whole = await fetch(url)
    assert.strictEqual(whole.headers.get("content-length"), String(size))
    assert.strictEqual(whole.headers.get("content-type"), "video/mp4")
    let read = 0
    for await (const piece of whole.body as unknown as AsyncIterable<Uint8Array>) {
      if (read === 0)
        assert.isTrue(Buffer.from(piece).subarray(0, 12).equals(mp4Head.subarray(0, 12)))
      read += piece.length
      peak = Math.max(peak, residentBytes(gateway.pid))
    }
    assert.strictEqual(read, size)
    const range = await fetch(url, { headers: { range: `bytes=0-${mp4Head.length - 1}` } })
    assert.strictEqual(range.status, 206)
    assert.isTrue(Buffer.from(await range.arrayBuffer()).equals(mp4Head))
    const last = await fetch(url, { headers: { range: "bytes=-10" } })
    assert.strictEqual(last.headers.get("content-range"), `bytes ${size - 10}-${size - 1}/${size}`)
    assert.strictEqual((await last.arrayBuffer()).byteLength, 10)
    assert.isBelow(peak - before, growthMax)
  }, 600_000)
})

const disposable = async (starting: Promise<Upstream>) => {
  const it = await starting
  return { it, [Symbol.asyncDispose]: () => it.close() }
}
