import { assert } from "@effect/vitest"
import { Effect } from "effect"
import OpenAI, { APIError, toFile } from "openai"
import { adminToken, readResult } from "../../support/gateway.ts"
import { liveLayer } from "../../support/liveLayer.ts"
import { png } from "../../support/media.ts"
import { call, json, Running, runningGateway } from "../../support/running.ts"

const clientOf = (apiKey: string) =>
  Effect.map(Running, ({ url }) => new OpenAI({ apiKey, baseURL: `${url}/v1` }).videos)

/** As users have it: with its default retries. */
const client = Effect.flatMap(Running, ({ key }) => clientOf(key))

const refusal = (request: Promise<unknown>) =>
  Effect.promise(async () => {
    const error: unknown = await request.then(
      () => undefined,
      (error: unknown) => error
    )
    if (!(error instanceof APIError)) throw new Error(`no error of the API: ${String(error)}`)
    return { status: error.status, code: error.code }
  })

const ended = (videos: OpenAI["videos"], id: string) =>
  Effect.promise(() => videos.retrieve(id)).pipe(
    Effect.tap(Effect.promise(() => new Promise((resolve) => setTimeout(resolve, 20)))),
    Effect.repeat({
      until: ({ status }) => status === "completed" || status === "failed",
      times: 1000
    })
  )

const read = (path: string, init?: RequestInit) =>
  Effect.flatMap(call(path, init), (answer) => Effect.promise(() => readResult(answer)))

const notFound = { status: 404, code: "2005" }

/** docs/reference/shapes.md#videos */
liveLayer(runningGateway())("the videos of the openai package", (it) => {
  it.effect("are created, polled, downloaded whole and in ranges, listed and deleted", () =>
    Effect.gen(function* () {
      const videos = yield* client
      const asked = { model: "text-to-video-spark", prompt: "a", size: "720x1280" } as const
      const { data: created, response } = yield* Effect.promise(() =>
        videos.create({ ...asked, seconds: "10" as never }).withResponse()
      )
      assert.deepInclude<object>(created, {
        object: "video",
        model: "text-to-video-spark",
        status: "queued",
        progress: 0,
        prompt: "a",
        seconds: "10",
        size: "720x1280",
        completed_at: null,
        expires_at: null,
        error: null
      })
      assert.strictEqual(response.status, 200)
      assert.strictEqual(response.headers.get("x-service-cost"), "100.00")
      assert.strictEqual(response.headers.get("openai-poll-after-ms"), "2000")
      const done = yield* ended(videos, created.id)
      assert.deepInclude(done, { status: "completed", progress: 100 })
      assert.strictEqual(done.expires_at, done.completed_at! + 86_400)

      const whole = yield* Effect.promise(() => videos.downloadContent(created.id))
      assert.strictEqual(whole.headers.get("content-type"), "video/mp4")
      const bytes = Buffer.from(yield* Effect.promise(() => whole.arrayBuffer()))
      assert.strictEqual(bytes.toString("latin1", 4, 8), "ftyp")
      const part = yield* Effect.promise(() =>
        videos.downloadContent(created.id, {}, { headers: { range: "bytes=4-7" } })
      )
      assert.strictEqual(part.status, 206)
      assert.strictEqual(yield* Effect.promise(() => part.text()), "ftyp")
      const { receipt } = (yield* read(`/manage/v1/tasks/${created.id}`)).json
      assert.strictEqual(receipt.captured, "100.00")

      const image = yield* Effect.promise(() => toFile(png({ width: 400, height: 400 }), "a.png"))
      const second = yield* Effect.promise(() =>
        videos.create({ model: "image-to-video-spark", prompt: "b", input_reference: image })
      )
      assert.deepInclude(second, { seconds: "5", size: "1280x720" })
      const { body } = (yield* read(`/manage/v1/tasks/${second.id}`)).json
      assert.match(body.image, /^artifact:/u)
      yield* ended(videos, second.id)

      const all: Array<string> = []
      yield* Effect.promise(async () => {
        for await (const { id } of videos.list({ limit: 1 })) all.push(id)
      })
      assert.deepStrictEqual(all, [second.id, created.id])
      const oldest = yield* Effect.promise(() => videos.list({ order: "asc", after: created.id }))
      assert.deepStrictEqual([oldest.data[0]?.id, oldest.has_more], [second.id, false])

      const link = (yield* read(`/vendors/service/v1/text-to-video-spark/generation/${created.id}`))
        .json.videos[0]
      assert.strictEqual((yield* call(link)).status, 200)
      const gone = yield* Effect.promise(() => videos.delete(created.id))
      assert.deepStrictEqual(
        { ...gone },
        { id: created.id, object: "video.deleted", deleted: true }
      )
      assert.deepStrictEqual(yield* refusal(videos.retrieve(created.id)), notFound)
      assert.deepStrictEqual(yield* refusal(videos.downloadContent(created.id)), notFound)
      assert.deepStrictEqual(yield* refusal(videos.delete(created.id)), notFound)
      assert.lengthOf((yield* Effect.promise(() => videos.list())).data, 1)
      assert.strictEqual((yield* call(link)).status, 404)
      // The task and its charge stay
      assert.deepEqual((yield* read(`/manage/v1/tasks/${created.id}`)).json.receipt, receipt)
    })
  )

  it.effect("show the error of a failure, and are cancelled by a delete while they run", () =>
    Effect.gen(function* () {
      const videos = yield* client
      const model = "text-to-video-spark"
      const failed = yield* Effect.promise(() => videos.create({ model, prompt: "[[sim:refuse]]" }))
      const { error, status } = yield* ended(videos, failed.id)
      assert.deepStrictEqual([status, error?.code], ["failed", "3001"])
      const running = yield* Effect.promise(() => videos.create({ model, prompt: "[[sim:hang]]" }))
      assert.deepStrictEqual(yield* refusal(videos.downloadContent(running.id)), notFound)
      yield* Effect.promise(() => videos.delete(running.id))
      const { json } = yield* read(`/manage/v1/tasks/${running.id}`)
      assert.deepStrictEqual([json.status, json.error.code], ["failed", 4004])
      assert.strictEqual(json.receipt.released, "50.00")
    })
  )

  it.effect("return the first response again for the same Idempotency-Key", () =>
    Effect.gen(function* () {
      const videos = yield* client
      const key = { headers: { "idempotency-key": "film-1" } }
      const create = (prompt: string) =>
        videos.create({ model: "text-to-video-spark", prompt }, key).withResponse()
      const first = yield* Effect.promise(() => create("a"))
      yield* ended(videos, first.data.id)
      const again = yield* Effect.promise(() => create("a"))
      assert.deepStrictEqual({ ...again.data }, { ...first.data })
      assert.strictEqual(again.response.headers.get("idempotency-replayed"), "true")
      assert.strictEqual((yield* refusal(create("b"))).code, "2008")
    })
  )

  it.effect("belong to their owner, and are refused if they cannot be made", () =>
    Effect.gen(function* () {
      const videos = yield* client
      const model = "text-to-video-spark"
      const { id } = yield* Effect.promise(() => videos.create({ model, prompt: "a" }))
      const admin = { authorization: `Bearer ${adminToken}` }
      const asAdmin = (path: string, body: object) =>
        read(path, { ...json(body), headers: { ...json(body).headers, ...admin } })
      const user = (yield* asAdmin("/manage/v1/users", { email: "other@example.com" })).json
      const made = yield* asAdmin(`/manage/v1/users/${user.id}/api-keys`, { name: "a" })
      const other = yield* clientOf(made.json.key)
      for (const request of [
        () => other.retrieve(id),
        () => other.downloadContent(id),
        () => other.delete(id),
        () => other.remix(id, { prompt: "b" }),
        () => videos.retrieve("video_1")
      ]) {
        assert.deepStrictEqual(yield* refusal(request()), notFound)
      }
      assert.deepStrictEqual((yield* Effect.promise(() => other.list())).data, [])
      const invalid = { status: 400, code: "2001" }
      assert.deepStrictEqual(yield* refusal(videos.remix(id, { prompt: "b" })), invalid)
      for (const body of [
        { model, prompt: "a", seconds: "4" },
        { model, prompt: "a", size: "10x10" },
        { model, prompt: "a", input_reference: "https://example.com/a.png" },
        { prompt: "a" }
      ]) {
        assert.deepStrictEqual(yield* refusal(videos.create(body as never)), invalid)
      }
      for (const query of ["limit=0", "order=up", "after=1", "other=1"]) {
        assert.strictEqual((yield* call(`/v1/videos?${query}`)).status, 400, query)
      }
      const thumbnail = videos.downloadContent(id, { variant: "thumbnail" })
      assert.deepStrictEqual(yield* refusal(thumbnail), invalid)
      const unknown = videos.create({ model: "sora-9", prompt: "a" })
      assert.deepStrictEqual(yield* refusal(unknown), { status: 404, code: "2006" })
    })
  )
})
