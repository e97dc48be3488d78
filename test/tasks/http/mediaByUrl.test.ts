import { PgClient } from "@effect/sql-pg"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Layer, Result } from "effect"
import { TestClock } from "effect/testing"
import type { ServerResponse } from "node:http"
import { afterAll, beforeAll } from "vitest"
import { parseEgressAllow } from "../../../src/domain/network/EgressAllow.ts"
import { EgressGuard } from "../../../src/egress/EgressGuard.ts"
import { MediaFetch } from "../../../src/egress/MediaFetch.ts"
import { dashscope } from "../../../src/testing/vendors/DashScopeProtocol.ts"
import { eventually, layerGateway, makeUser } from "../../support/gateway.ts"
import { keepsLessThan, kept, megabyte } from "../../support/heap.ts"
import { liveLayer } from "../../support/liveLayer.ts"
import { localServer } from "../../support/localServer.ts"
import {
  base64,
  bmp,
  concat,
  dataUri,
  gif,
  jpeg,
  jpegThumbnail,
  mp4,
  png,
  pngOfBytes,
  webp
} from "../../support/media.ts"
import { ownClock } from "../../support/ownClock.ts"
import { call, finishedTask, json, runningGateway } from "../../support/running.ts"
import { until } from "../../support/until.ts"
import { Upstream } from "../../support/upstreams/Upstream.ts"

/** docs/reference/models.md#media-by-url, and inline media at create, through the whole service. */

const edit = "/vendors/alibaba/v1/image-edit/generation"

const serve = (bytes: Uint8Array) =>
  localServer((_request, response) => void response.end(Buffer.from(bytes)))

const errorOf = (url: string) =>
  Effect.map(
    finishedTask(edit, { prompt: "a", n: 1, images: [url] }),
    ({ task_info }) => task_info.error
  )

const big = new Uint8Array(64 * 1024)

liveLayer(runningGateway())((it) => {
  describe("media by URL", () => {
    it.effect("an image that satisfies the rules is fetched and the task completes", () =>
      Effect.gen(function* () {
        for (const bytes of [png(), jpeg(), bmp(), webp()]) {
          const url = yield* serve(bytes)
          const task = yield* finishedTask(edit, { prompt: "a", n: 1, images: [`${url}/a?b=c`] })
          assert.strictEqual(task.task_info.status, "completed", JSON.stringify(task))
          assert.strictEqual(task.images?.length, 1)
        }
      })
    )

    it.effect("at most three redirects are followed, through the guard", () =>
      Effect.gen(function* () {
        const url = yield* localServer((request, response) => {
          const left = Number(request.url?.slice(1))
          if (left === 0) return void response.end(Buffer.from(png()))
          response.writeHead(302, { location: `/${left - 1}` }).end()
        })
        assert.isUndefined(yield* errorOf(`${url}/3`))
        const error = yield* errorOf(`${url}/4`)
        assert.strictEqual(error?.code, 4002)
        assert.match(error?.detail ?? "", /redirects more than 3 times/)
      })
    )

    it.effect("a redirect to another scheme or to a non-public address is not followed", () =>
      Effect.gen(function* () {
        for (const location of [
          "file:///etc/passwd",
          "http://10.0.0.1/",
          "http://169.254.169.254/latest/meta-data",
          "http://user:pw@127.0.0.1/",
          "http://[::ffff:10.0.0.1]/"
        ]) {
          const url = yield* localServer((_request, response) =>
            response.writeHead(302, { location }).end()
          )
          assert.strictEqual((yield* errorOf(url))?.code, 4002, location)
        }
      })
    )

    it.effect("a failed download fails the task with 4002", () =>
      Effect.gen(function* () {
        const missing = yield* localServer((_request, response) => response.writeHead(404).end())
        const broken = yield* localServer((request) => request.socket.destroy())
        const cut = yield* localServer((request, response) => {
          response.writeHead(200, { "content-length": "1000" })
          response.write(png().subarray(0, 20))
          setTimeout(() => request.socket.destroy(), 20)
        })
        const packed = yield* localServer((_request, response) =>
          response.writeHead(200, { "content-encoding": "gzip" }).end("x")
        )
        for (const url of [missing, broken, cut, packed]) {
          const error = yield* errorOf(url)
          assert.strictEqual(error?.code, 4002)
          assert.match(error?.detail ?? "", /^#\/images\/0: The URL could not be downloaded: /)
        }
        assert.strictEqual((yield* errorOf("http://127.0.0.1:1/"))?.code, 4002)
        assert.strictEqual((yield* errorOf("http://nowhere.invalid/"))?.code, 4002)
        assert.strictEqual((yield* errorOf("http://10.0.0.1/a.png"))?.code, 4002)
      })
    )

    it.effect("a medium that breaks a rule of the model fails the task with 400 and its name", () =>
      Effect.gen(function* () {
        const whole = png()
        const files: Record<string, Uint8Array> = {
          truncated: whole.subarray(0, whole.length - 5),
          "another format": gif(),
          "too small": png({ width: 383, height: 400 }),
          empty: new Uint8Array(),
          text: Buffer.from("<svg onload=alert(1)>")
        }
        for (const [name, bytes] of Object.entries(files)) {
          const url = yield* serve(bytes)
          const error = yield* errorOf(url)
          assert.strictEqual(error?.code, 400, name)
          assert.match(error?.detail ?? "", /^#\/images\/0: /, name)
        }
      })
    )

    it.effect(
      "data after the end of a medium is not stored, whether inline, by URL or in a form",
      () =>
        Effect.gen(function* () {
          const sql = yield* PgClient.PgClient
          const photo = jpeg({ extra: [jpegThumbnail()] })
          const motion = concat(photo, mp4())
          const url = yield* serve(motion)
          const images = [url, base64(motion), dataUri("image/jpeg", motion)]
          const task = yield* finishedTask(edit, { prompt: "a", n: 1, images })
          assert.strictEqual(task.task_info.status, "completed", JSON.stringify(task))
          const form = new FormData()
          form.set("model", "image-edit")
          form.set("prompt", "a")
          form.set("image", new File([Buffer.from(motion)], "photo.jpg"))
          const edited = yield* call("/v1/images/edits", { method: "POST", body: form })
          assert.strictEqual(edited.status, 200, yield* Effect.promise(() => edited.text()))
          assert.deepStrictEqual(
            yield* sql`
          SELECT bytes::int AS bytes, count(*)::int AS files FROM artifacts
          WHERE role = 'input' AND bytes IN (${photo.length}, ${motion.length}) GROUP BY bytes`,
            [{ bytes: photo.length, files: 4 }]
          )
        })
    )

    it.effect("a download is ended at the first byte above the limit", () =>
      Effect.gen(function* () {
        let sent = 0
        const endless = yield* localServer((_request, response) => {
          response.writeHead(200)
          response.on("error", () => {})
          const more = (): void => {
            sent += big.length
            if (sent < 64 * 1024 * 1024 && !response.destroyed) response.write(big, more)
          }
          more()
        })
        const announced = yield* localServer((_request, response) => {
          response.writeHead(200, { "content-length": String(10 * 1024 * 1024 + 1) })
          response.flushHeaders()
        })
        for (const url of [endless, announced]) {
          const error = yield* errorOf(url)
          assert.strictEqual(error?.code, 400)
          assert.match(error?.detail ?? "", /at most 10 MB/)
        }
        assert.isBelow(sent, 24 * 1024 * 1024)
      })
    )
  })

  describe("inline media", () => {
    const refused = Effect.fnUntraced(function* (image: string, name: string) {
      const answer = yield* call(edit, json({ prompt: "a", images: [image] }))
      const problem = (yield* Effect.promise(() => answer.json())) as {
        code: number
        errors: ReadonlyArray<{ pointer: string }>
      }
      assert.strictEqual(answer.status, 400, name)
      assert.strictEqual(problem.code, 2001, name)
      assert.deepStrictEqual(
        problem.errors.map(({ pointer }) => pointer),
        ["#/images/0"],
        name
      )
    })

    it.effect("truncated, inconsistent, empty and unsupported files are refused at create", () =>
      Effect.gen(function* () {
        const sql = yield* PgClient.PgClient
        const stored = sql`SELECT count(*) FROM artifacts`
        const before = yield* stored
        const whole = png()
        yield* refused(base64(whole.subarray(0, whole.length - 5)), "truncated")
        yield* refused(dataUri("image/jpeg", whole), "lying")
        yield* refused(base64(png({ width: 0, height: 0 })), "zero-sized")
        yield* refused(base64(png({ width: 60_000, height: 60_000, storedHeight: 1 })), "huge")
        yield* refused(base64(gif()), "foreign")
        const answer = yield* call(edit, json({ prompt: "a", n: 9, images: [base64(whole)] }))
        assert.strictEqual(answer.status, 400)
        assert.deepStrictEqual(yield* stored, before, "nothing of them is stored")
      })
    )

    it.effect(
      "any number of 10 MB images, accepted or refused, leaves memory flat",
      () =>
        Effect.gen(function* () {
          const limit = 10 * megabyte
          const bodies = [
            [pngOfBytes(limit), 200],
            [pngOfBytes(limit + 1), 400]
          ] as const
          const ask = (body: string, status: number) =>
            Effect.gen(function* () {
              const answer = yield* call(`${edit}?dry_run=true`, json(body))
              yield* Effect.promise(() => answer.text())
              assert.strictEqual(answer.status, status)
            })
          yield* ask(JSON.stringify({ prompt: "a" }), 400)
          for (const [bytes, status] of bodies) {
            const body = JSON.stringify({ prompt: "a", images: [base64(bytes)] })
            const before = kept()
            for (let n = 0; n < 4; n += 1) yield* ask(body, status)
            // None of the four images is kept
            yield* keepsLessThan(8 * megabyte, before)
          }
        }),
      180_000
    )
  })

  describe("the media of one task", () => {
    const editPro = "/vendors/google/v1/image-edit-pro/edit"

    it.effect("are fetched four at a time", () =>
      Effect.gen(function* () {
        const waiting: Array<ServerResponse> = []
        let [answered, most] = [0, 0]
        const url = yield* localServer((_request, response) => {
          most = Math.max(most, waiting.push(response))
          if (waiting.length < Math.min(4, 10 - answered)) return
          answered += waiting.length
          for (const held of waiting.splice(0)) held.end(Buffer.from(png()))
        })
        const images = Array.from({ length: 10 }, (_, index) => `${url}/${index}`)
        const task = yield* finishedTask(editPro, { prompt: "a", images })
        assert.strictEqual(task.task_info.status, "completed", JSON.stringify(task))
        assert.strictEqual(most, 4)
      })
    )

    it.effect("a cancel interrupts their download at once", () =>
      Effect.gen(function* () {
        const [asked, closed] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
        const url = yield* localServer((request) => {
          request.on("close", () => closed.resolve())
          asked.resolve()
        })
        const created = yield* call(edit, json({ prompt: "a", n: 1, images: [url] }))
        const { task_info } = (yield* Effect.promise(() => created.json())) as {
          task_info: { id: string }
        }
        yield* Effect.promise(() => asked.promise)
        const now = ownClock()
        const began = now()
        const cancelled = yield* call(`${edit}/${task_info.id}`, { method: "DELETE" })
        assert.strictEqual(cancelled.status, 200)
        yield* Effect.promise(() => closed.promise)
        // Every time-out of the download itself is 30 seconds or longer
        assert.isBelow(now() - began, 15_000)
      })
    )
  })
})

describe("the deadline of a task", () => {
  it.effect("interrupts the download of its media", () =>
    Effect.gen(function* () {
      const asked = Promise.withResolvers<void>()
      const closed = Promise.withResolvers<void>()
      const url = yield* localServer((_request, response) => {
        response.on("close", () => closed.resolve())
        asked.resolve()
      })
      const user = yield* makeUser()
      const created = yield* user.call("POST", edit, { prompt: "a", n: 1, images: [url] })
      yield* Effect.promise(() => asked.promise)
      yield* TestClock.adjust("10 seconds")
      yield* Effect.promise(() => closed.promise)
      const task = user.call("GET", `${edit}/${created.json.task_info.id}`)
      yield* eventually(task, ({ json }) => json.task_info.error?.code === 4005)
    }).pipe(Effect.provide(layerGateway({ env: { TASK_DEADLINE: "10 seconds" } })))
  )
})

describe("a vendor that reads URLs", () => {
  let upstream: Upstream
  beforeAll(async () => {
    upstream = await Upstream.start(dashscope)
  })
  afterAll(() => upstream.close())

  it.live("gets the bytes of a medium with data after its end, also in a second submit", () =>
    Effect.gen(function* () {
      const photo = jpeg()
      const plain = yield* serve(photo)
      const motion = yield* serve(concat(photo, mp4()))
      upstream.submitFaults = ["429"]
      const images = [plain, motion]
      const task = yield* finishedTask(edit, { prompt: "a", n: 1, images })
      assert.strictEqual(task.task_info.status, "completed", JSON.stringify(task))
      const sent = upstream.seen.filter((it) => it.method === "POST")
      assert.deepStrictEqual(
        sent.map(({ json }) => json.input.images),
        [1, 2].map(() => [plain, dataUri("image/jpeg", photo)])
      )
    }).pipe(
      Effect.provide(
        Layer.unwrap(
          Effect.sync(() =>
            runningGateway({ DASHSCOPE_API_KEY: upstream.key, DASHSCOPE_BASE_URL: upstream.url })
          )
        )
      )
    )
  )
})

const mediaFetch = MediaFetch.layer({ serviceName: "Service" }).pipe(
  Layer.provide(EgressGuard.layer({ allow: Result.getOrThrow(parseEgressAllow("127.0.0.1/32")) }))
)

const fetched = (url: string, { bytesMax = 100, caller = "somebody" } = {}) =>
  Effect.flatMap(MediaFetch, (web) =>
    Effect.result(web.fetch({ url, schemes: ["http"], bytesMax, caller }))
  )

/** The detail of a failed fetch, as a client reads it. */
const detailOf = (result: Effect.Success<ReturnType<typeof fetched>>): string => {
  if (Result.isSuccess(result)) return "no failure"
  return result.failure._tag === "MediaFetchFailed" ? result.failure.detail : result.failure._tag
}

describe("MediaFetch", () => {
  it.effect("gives up a host that does not respond after 30 seconds", () =>
    Effect.gen(function* () {
      const asked = Promise.withResolvers<void>()
      const url = yield* localServer(() => asked.resolve())
      const fiber = yield* Effect.forkChild(fetched(url))
      yield* Effect.promise(() => asked.promise)
      yield* TestClock.adjust("29 seconds")
      assert.isUndefined(fiber.pollUnsafe())
      yield* TestClock.adjust("1 second")
      assert.strictEqual(
        detailOf(yield* Fiber.join(fiber)),
        "The URL could not be downloaded: it took longer than 30 seconds"
      )
    }).pipe(Effect.provide(mediaFetch))
  )

  it.effect("gives up a host that has sent too slowly for 5 seconds", () =>
    Effect.gen(function* () {
      const trickling: Array<ServerResponse> = []
      const url = yield* localServer((_request, response) => {
        response.writeHead(200).write("a")
        trickling.push(response)
      })
      const bytesMax = 10 * megabyte
      const fiber = yield* Effect.forkChild(fetched(url, { bytesMax }))
      yield* Effect.promise(() => until(() => trickling.length === 1))
      // Its header has arrived once time no longer has an effect before the download itself fails
      for (let n = 0; n < 25 && fiber.pollUnsafe() === undefined; n += 1) {
        trickling[0]!.write("a")
        yield* Effect.promise(() => new Promise((resolve) => setImmediate(resolve)))
        yield* TestClock.adjust("1 second")
      }
      assert.match(detailOf(yield* Fiber.join(fiber)), /sent less than 32 KiB per second over 5 s/u)
    }).pipe(Effect.provide(mediaFetch))
  )

  it.effect("delays no download of a user because of another user's slow hosts", () =>
    Effect.gen(function* () {
      let open = 0
      const slow = yield* localServer((_request, response) => {
        open += 1
        response.writeHead(200).write("a")
      })
      const quick = yield* localServer((_request, response) => void response.end("picture"))
      const attack = yield* Effect.forkChild(
        Effect.forEach(
          Array.from({ length: 150 }, (_, n) => n),
          (n) => fetched(`${slow}/${n}`, { caller: "attacker" }),
          { concurrency: "unbounded" }
        )
      )
      yield* Effect.promise(() => until(() => open === 12))
      const { mayWait } = yield* MediaFetch
      assert.isFalse(mayWait("attacker", 1))
      assert.isTrue(mayWait("victim", 4))
      for (let n = 0; n < 3; n += 1) {
        assert.isTrue(Result.isSuccess(yield* fetched(quick, { caller: "victim" })))
      }
      assert.strictEqual(open, 12)
      yield* Fiber.interrupt(attack)
      assert.isTrue(mayWait("attacker", 100))
    }).pipe(Effect.provide(mediaFetch))
  )
})
