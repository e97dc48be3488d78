import { assert, describe } from "@effect/vitest"
import { Effect, Layer, Result } from "effect"
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { afterAll, beforeAll, beforeEach } from "vitest"
import { falModel, replicateModel } from "../../../src/catalog/jobs/PublishedModel.ts"
import { sniff } from "../../../src/catalog/media/Formats.ts"
import { MockVendor, startVendorServer } from "../../../src/testing/index.ts"
import type { VendorServer } from "../../../src/testing/index.ts"
import { fal } from "../../../src/testing/vendors/FalProtocol.ts"
import { replicate } from "../../../src/testing/vendors/ReplicateProtocol.ts"
import { readResult } from "../../support/gateway.ts"
import { liveLayer } from "../../support/liveLayer.ts"
import { falImages, replicateCaption, replicateImages } from "../../support/publishedModels.ts"
import { call, finishedTask, json, runningGateway } from "../../support/running.ts"
import { temporaryFolder } from "../../support/temporaryFolder.ts"
import { describedKinds } from "../../support/upstreams/describedKinds.ts"
import { studio } from "../../support/upstreams/describedStudio.ts"
import { pixel, Upstream } from "../../support/upstreams/Upstream.ts"

/**
 * Models of descriptions (docs/vendors-as-files.md) and imported ones (docs/catalog.md#models-with-a-body-of-their-own)
 * in the whole service: against vendors, and without a key, when the service plays the vendor.
 */

const folder = temporaryFolder("described-models")
const catalog = join(folder, "catalog.json")
const metered = (model: string, submit: object) => ({
  model,
  result: "videos",
  body: {
    type: "object",
    properties: {
      prompt: { type: "string" },
      seconds: { type: "integer", minimum: 1, maximum: 10, default: 4 }
    },
    required: ["prompt"],
    additionalProperties: false
  },
  submit: { path: "/v1/jobs", json: { prompt: { $: "$.body.prompt" } }, ...submit },
  price: { per: "expression", hold: "90000000", capture: "timesUp(usage.seconds, 1500000)" }
})

/** Priced by the seconds that it reports, and it reports none before a job has ended. */
const meter = {
  name: "meter",
  base: "https://api.meter.example",
  jobs: {
    submit: { handle: { id: "$.id" } },
    poll: { path: "/v1/jobs/{id}" },
    state: { at: "$.state", running: ["running"], done: ["done"], failed: ["failed"] },
    results: { urls: ["$.files[*]"] },
    error: { message: ["$.message"] },
    failures: [],
    usage: { seconds: "$.billed.seconds" },
    progress: { at: "$.done.steps", of: 30 },
    models: [metered("film", {}), metered("clip", { results: { urls: ["$.files[*]"] } })]
  }
}

const rowOf = (
  vendor: string,
  model: string,
  imported: ReturnType<typeof falModel>,
  price: object
) => {
  const { notes: _, ...published } = Result.getOrThrow(imported)
  return { vendor, model, ...published, price }
}

const brush = rowOf("fal", "brush", falModel({ id: "acme-ai/brush/edit", document: falImages }), {
  per: "expression",
  hold: "body.num_images * 4000000"
})
const perCall = { per: "call", amount: "2.00" }
const flux = rowOf(
  "replicate",
  "flux",
  replicateModel({ id: "black-forest-labs/flux-schnell", document: replicateImages }),
  perCall
)
const caption = rowOf(
  "replicate",
  "caption",
  replicateModel({ id: "acme/model", document: replicateCaption }),
  perCall
)
const draft = rowOf("fal", "draft", falModel({ id: "acme-ai/brush/edit", document: falImages }), {
  per: "expression",
  hold: "40000000",
  capture: "body.num_images * 4000000"
})

writeFileSync(
  catalog,
  JSON.stringify({
    vendors: ["bfl", "byteplus", "elevenlabs", "luma", "runway", meter, studio, describedKinds],
    mediaModels: [brush, draft, flux, caption]
  })
)

const pathOf = (model: string, vendor = "runway") => `/vendors/${vendor}/v1/${model}/generation`
const picture = `data:image/png;base64,${pixel.toString("base64")}`

const bodyOf = (answer: Response) =>
  Effect.promise(() => answer.json() as Promise<Record<string, unknown>>)
const costOf = (path: string, id: string) =>
  Effect.map(call(`${path}/${id}`), (shown) => shown.headers.get("x-service-cost"))

const formatAt = (url: string | undefined) =>
  Effect.promise(async () => sniff(new Uint8Array(await (await fetch(url ?? "")).arrayBuffer())))

type Kind = "images" | "audios" | "meshes" | "documents"

const finished = (model: string) =>
  Effect.map(finishedTask(pathOf(model, "every-kind"), { prompt: "A lighthouse" }), (task) => {
    assert.strictEqual(task.task_info.status, "completed", JSON.stringify(task))
    return task as typeof task & { readonly [kind in Kind]?: ReadonlyArray<string> }
  })

const typeAndBytes = (url: string | undefined) =>
  Effect.promise(async () => {
    const response = await fetch(url ?? "")
    return [
      response.headers.get("content-type"),
      Buffer.from(await response.arrayBuffer())
    ] as const
  })

/** Each model with what it makes, its media type and its first bytes. */
const made = (sound: string): ReadonlyArray<readonly [string, Kind, string, string]> => [
  ["song", "audios", sound, sound === "audio/wav" ? "RIFF" : "ID3"],
  ["sound", "audios", sound, sound === "audio/wav" ? "RIFF" : "ID3"],
  ["statue", "meshes", "model/gltf-binary", "glTF"],
  ["sketch", "images", "image/png", "\u0089PNG"],
  ["caption", "documents", "application/json", "{"]
]

const makesAll = (sound: string) =>
  Effect.gen(function* () {
    for (const [model, kind, type, head] of made(sound)) {
      const task = yield* finished(model)
      assert.hasAllKeys(task, ["task_info", kind])
      const [mime, bytes] = yield* typeAndBytes(task[kind]?.[0])
      assert.strictEqual(mime, type, model)
      assert.isTrue(bytes.toString("latin1").startsWith(head), model)
      assert.strictEqual(yield* costOf(pathOf(model, "every-kind"), task.task_info.id), "5.00")
    }
  })

describe("a vendor with a key", () => {
  let server: VendorServer
  let upstreams: readonly [Upstream, Upstream]
  beforeAll(async () => {
    server = await startVendorServer(describedKinds)
    upstreams = [await Upstream.start(fal), await Upstream.start(replicate)]
  })
  beforeEach(() => {
    for (const upstream of upstreams) {
      upstream.reset()
      upstream.runningPolls = 0
    }
  })
  afterAll(() => Promise.all([server.stop(), ...upstreams.map((it) => it.close())]))
  const gateway = Layer.unwrap(
    Effect.sync(() =>
      runningGateway({
        CATALOG_FILE: catalog,
        ...server.env,
        FAL_API_KEY: upstreams[0].key,
        FAL_BASE_URL: upstreams[0].url,
        REPLICATE_API_KEY: upstreams[1].key,
        REPLICATE_BASE_URL: `${upstreams[1].url}/v1`
      })
    )
  )

  liveLayer(gateway)((it) => {
    describe("results of a described vendor", () => {
      it.effect("are images, sounds, 3D files and JSON, by URL, in Base64 or as the response", () =>
        makesAll("audio/mpeg")
      )

      it.effect(
        "of a call without a job are bought once, and only a refusal that bought nothing is repeated",
        () =>
          Effect.gen(function* () {
            const sold = server.sold
            server.failNext(MockVendor.refused("RATE_LIMITED", "later"))
            yield* finished("sound")
            assert.strictEqual(server.sold, sold + 1)
            server.failNext(MockVendor.refused("AMBIGUOUS", "the connection broke"))
            const lost = yield* finishedTask(pathOf("sound", "every-kind"), { prompt: "p" })
            assert.strictEqual(lost.task_info.error?.code, 3004)
            assert.strictEqual(server.sold, sold + 2)
          })
      )
    })

    describe("an imported model", () => {
      it.effect("of fal gets its fields under the vendor's names, and its media inline", () =>
        Effect.gen(function* () {
          const path = "/vendors/fal/v1/brush/generation"
          const body = { prompt: "A lighthouse", image_urls: [picture], num_images: 2 }
          const quoted = yield* Effect.flatMap(call(`${path}?dry_run=true`, json(body)), bodyOf)
          assert.deepStrictEqual(quoted["quote"], { amount: "8.00", currency: "credits" })
          const task = yield* finishedTask(path, body)
          assert.strictEqual(task.task_info.status, "completed", JSON.stringify(task))
          assert.lengthOf(task.images ?? [], 2)
          const [upstream] = upstreams
          assert.strictEqual(upstream.lastSubmit.path, "/acme-ai/brush/edit")
          assert.deepStrictEqual(upstream.lastSubmit.json, { ...body, image_size: "landscape_4_3" })
          assert.strictEqual(yield* costOf(path, task.task_info.id), "8.00")
        })
      )

      it.effect("refuses what its schema does not allow and inputs that are not media", () =>
        Effect.gen(function* () {
          const answer = yield* call(
            "/vendors/fal/v1/brush/generation",
            json({ prompt: "ab", image_urls: ["bm8="], num_images: 9, sync_mode: true })
          )
          assert.strictEqual(answer.status, 400)
          const { errors } = yield* bodyOf(answer)
          assert.sameMembers(
            (errors as ReadonlyArray<{ pointer: string }>).map(({ pointer }) => pointer),
            ["#/prompt", "#/num_images", "#/sync_mode", "#/image_urls/0"]
          )
        })
      )

      it.effect("of Replicate is found by its own fields after a lost response", () =>
        Effect.gen(function* () {
          const [, upstream] = upstreams
          upstream.submitFaults = ["drop-after"]
          const path = "/vendors/replicate/v1/flux/generation"
          const task = yield* finishedTask(path, { prompt: "A lighthouse", num_outputs: 2 })
          assert.strictEqual(task.task_info.status, "completed", JSON.stringify(task))
          assert.lengthOf(task.images ?? [], 2)
          assert.strictEqual(upstream.paidSubmits, 1)
          const sent = upstream.seen.find(({ method }) => method === "POST")
          assert.deepStrictEqual(sent?.json.input, {
            prompt: "A lighthouse",
            num_outputs: 2,
            aspect_ratio: "1:1",
            output_format: "webp"
          })
        })
      )

      it.effect("with JSON results returns the whole output", () =>
        Effect.gen(function* () {
          const [, upstream] = upstreams
          upstream.submitFaults = [{ status: 201, json: { id: "c1", status: "starting" } }]
          upstream.askFaults = [
            { status: 200, json: { id: "c1", status: "succeeded", output: "a lighthouse" } }
          ]
          const path = "/vendors/replicate/v1/caption/generation"
          const task = yield* finishedTask(path, { image: picture })
          assert.strictEqual(task.task_info.status, "completed", JSON.stringify(task))
          const { documents } = task as { documents?: ReadonlyArray<string> }
          const found = yield* Effect.promise(() => fetch(documents?.[0] ?? ""))
          assert.strictEqual(yield* Effect.promise(() => found.json()), "a lighthouse")
          const [submit] = upstream.seen
          assert.deepStrictEqual(submit?.json, {
            version: replicateCaption.latest_version.id,
            input: { image: picture, task: "caption" }
          })
        })
      )
    })
  })
})

liveLayer(runningGateway({ CATALOG_FILE: catalog }))("without a key", (it) => {
  describe("a described vendor", () => {
    it.effect("makes pictures and videos, is marked as sandbox, and charges what it quotes", () =>
      Effect.gen(function* () {
        const orders: ReadonlyArray<readonly [string, object, string, "images" | "videos"]> = [
          ["gen4_image", { prompt: "A lighthouse", ratio: "1280:720" }, "5.00", "images"],
          ["gen4_image", { prompt: "A lighthouse", images: [picture, picture] }, "8.00", "images"],
          ["gen4.5", { prompt: "A lighthouse", duration: 2 }, "24.00", "videos"],
          ["gen4_turbo", { image: picture, duration: 2 }, "10.00", "videos"]
        ]
        for (const [model, body, price, kind] of orders) {
          const path = pathOf(model)
          const task = yield* finishedTask(path, body)
          assert.strictEqual(task.task_info.status, "completed", JSON.stringify(task))
          const format = yield* formatAt(task[kind]?.[0])
          assert.strictEqual(format, kind === "images" ? "PNG" : "MP4")
          const shown = yield* call(`${path}/${task.task_info.id}`)
          assert.strictEqual(shown.headers.get("x-service-cost"), price)
          assert.strictEqual(shown.headers.get("x-service-sandbox"), "true")
        }
      })
    )

    it.effect("may be any of the other shipped vendors", () =>
      Effect.gen(function* () {
        const prompt = "A lighthouse"
        const frames = { start_frame: picture, end_frame: picture }
        const orders: ReadonlyArray<readonly [string, string, object, string, string]> = [
          ["bfl", "flux-2-flex", { prompt, width: 1024, height: 1024 }, "10.00", "PNG"],
          ["bfl", "flux-kontext-pro", { prompt, images: [picture] }, "4.00", "PNG"],
          ["bfl", "flux-kontext-max", { prompt }, "8.00", "PNG"],
          ["elevenlabs", "sound-effects", { prompt, duration: 1.5 }, "12.00", "WAV"],
          ["byteplus", "seedance-2-0", { prompt, duration: 4 }, "63.98", "MP4"],
          ["byteplus", "seedream-5-0-lite", { prompt }, "3.50", "PNG"],
          ["byteplus", "seedream-4-5", { prompt, images: [picture], size: "4K" }, "4.00", "PNG"],
          ["luma", "uni-1", { prompt }, "4.04", "PNG"],
          [
            "luma",
            "uni-1-max",
            { prompt, image: picture, images: [picture, picture] },
            "10.90",
            "PNG"
          ],
          ["luma", "ray-3.2", { prompt, resolution: "540p", ...frames }, "15.00", "MP4"],
          ["luma", "ray-3.2", { prompt, duration: "10s" }, "90.00", "MP4"]
        ]
        for (const [vendor, model, body, price, expected] of orders) {
          const path = pathOf(model, vendor)
          const task = yield* finishedTask(path, body)
          assert.strictEqual(task.task_info.status, "completed", JSON.stringify(task))
          const { audios, images, videos } = task as typeof task & Record<string, Array<string>>
          const format = yield* formatAt((images ?? videos ?? audios)?.[0])
          assert.strictEqual(format, expected)
          assert.strictEqual(yield* costOf(path, task.task_info.id), price)
        }
      })
    )

    it.effect("shows progress as far as the description reads it", () =>
      Effect.gen(function* () {
        const videos = [
          ["meter/film", 100],
          ["byteplus/seedance-2-0", 50]
        ] as const
        for (const [model, expected] of videos) {
          const read = (path: string) =>
            Effect.flatMap(call(path), (answer) =>
              Effect.map(
                Effect.promise(() => readResult(answer)),
                ({ json }) => json
              )
            )
          const { id } = yield* Effect.flatMap(
            call("/v1/videos", json({ model, prompt: "A lighthouse [[sim:hang]]" })),
            (it) => Effect.promise(() => it.json() as Promise<{ readonly id: string }>)
          )
          const video = yield* read(`/v1/videos/${id}`).pipe(
            Effect.delay("20 millis"),
            Effect.repeat({
              until: ({ progress, status }) => status === "in_progress" && progress === expected,
              times: 1000
            })
          )
          assert.deepInclude(video, { status: "in_progress", progress: expected })
          const listed = yield* read("/v1/videos?limit=1")
          assert.deepInclude(listed.data[0], { id, progress: expected })
          const [vendor = "", name = ""] = model.split("/")
          const { task_info: info } = yield* read(`${pathOf(name, vendor)}/${id}`)
          assert.hasAllKeys(info, ["id", "status", "created_at", "updated_at"])
          const managed = yield* read(`/manage/v1/tasks/${id}`)
          assert.strictEqual(managed.progress, vendor === "meter" ? 100 : undefined)
          yield* call(`/v1/videos/${id}`, { method: "DELETE" })
        }
      })
    )

    it.effect("charges by the rendered seconds, with and without a job", () =>
      Effect.gen(function* () {
        for (const model of ["film", "clip"]) {
          const path = pathOf(model, "meter")
          const task = yield* finishedTask(path, { prompt: "A lighthouse", seconds: 2 })
          assert.strictEqual(task.task_info.status, "completed", JSON.stringify(task))
          assert.strictEqual(yield* costOf(path, task.task_info.id), "3.00")
        }
      })
    )

    it.effect("accepts uploads, forms of model ids and results below a member", () =>
      Effect.gen(function* () {
        const task = yield* finishedTask(pathOf("paint", "studio"), {
          prompt: "A lighthouse",
          image: picture
        })
        assert.strictEqual(task.task_info.status, "completed", JSON.stringify(task))
        assert.strictEqual(yield* formatAt(task.images?.[0]), "PNG")
      })
    )

    it.effect("refuses and fails as the description says", () =>
      Effect.gen(function* () {
        const codeOf = (prompt: string) =>
          Effect.map(
            finishedTask(pathOf("gen4_image"), { prompt }),
            ({ task_info: { error, status } }) => (error === undefined ? status : error.code)
          )
        assert.strictEqual(yield* codeOf("[[sim:429=1]] p"), "completed")
        assert.strictEqual(yield* codeOf("[[sim:503=1]] p"), "completed")
        assert.strictEqual(yield* codeOf("[[sim:fail]] p"), 3005)
        assert.strictEqual(yield* codeOf("[[sim:lost-submit]] p"), 3004)
        assert.strictEqual(yield* codeOf("[[sim:refuse]] p"), 3001)
      })
    )

    it.effect("can be cancelled", () =>
      Effect.gen(function* () {
        const path = pathOf("gen4.5")
        const created = yield* call(path, json({ prompt: "[[sim:hang]] p" }))
        const { task_info } = yield* Effect.promise(
          () => created.json() as Promise<{ task_info: { id: string } }>
        )
        const cancelled = yield* call(`${path}/${task_info.id}`, { method: "DELETE" })
        assert.strictEqual(cancelled.status, 200)
        assert.include(yield* Effect.promise(() => cancelled.text()), "4004")
      })
    )

    it.effect("refuses media that break a rule of its file at create, with their pointers", () =>
      Effect.gen(function* () {
        const gif = `data:image/gif;base64,${Buffer.from("GIF89a______").toString("base64")}`
        const refused = yield* call(pathOf("gen4_turbo"), json({ image: gif, duration: 99 }))
        assert.strictEqual(refused.status, 400)
        const { errors } = yield* Effect.promise(
          () => refused.json() as Promise<{ errors: ReadonlyArray<{ pointer: string }> }>
        )
        assert.sameMembers(
          errors.map(({ pointer }) => pointer),
          ["#/image", "#/duration"]
        )
      })
    )

    it.effect("also makes sounds, 3D files and JSON", () => makesAll("audio/wav"))

    it.effect("refuses a call without a job as the description says", () =>
      Effect.gen(function* () {
        const task = yield* finishedTask(pathOf("caption", "every-kind"), {
          prompt: "[[sim:refuse]] p"
        })
        assert.strictEqual(task.task_info.error?.code, 3001)
      })
    )
  })

  describe("an imported model", () => {
    it.effect("is charged by its capture, not its hold, as with a key", () =>
      Effect.gen(function* () {
        const path = "/vendors/fal/v1/draft/generation"
        const body = { prompt: "A lighthouse", image_urls: [picture], num_images: 2 }
        const quoted = yield* Effect.flatMap(call(`${path}?dry_run=true`, json(body)), bodyOf)
        assert.deepStrictEqual(quoted["quote"], { amount: "40.00", currency: "credits" })
        const task = yield* finishedTask(path, body)
        assert.strictEqual(yield* costOf(path, task.task_info.id), "8.00")
      })
    )

    it.effect("makes as many results as ordered, whatever its fields", () =>
      Effect.gen(function* () {
        const body = { prompt: "A lighthouse", image_urls: [picture], num_images: 3 }
        const task = yield* finishedTask("/vendors/fal/v1/brush/generation", body)
        assert.lengthOf(task.images ?? [], 3, JSON.stringify(task))
        const words = yield* finishedTask("/vendors/replicate/v1/caption/generation", {
          image: picture
        })
        assert.strictEqual(words.task_info.status, "completed", JSON.stringify(words))
      })
    )
  })
})
