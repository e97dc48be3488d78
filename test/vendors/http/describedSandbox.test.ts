import { assert, describe, layer } from "@effect/vitest"
import { Effect } from "effect"
import { rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { afterAll } from "vitest"
import { sniff } from "../../../src/catalog/media/Formats.ts"
import { readResult } from "../../support/gateway.ts"
import { call, finishedTask, json, runningGateway } from "../../support/running.ts"
import { temporaryFolder } from "../../support/temporaryFolder.ts"
import { studio } from "../../support/upstreams/describedStudio.ts"
import { pixel } from "../../support/upstreams/Upstream.ts"

/** docs/vendors-as-files.md: without a key a description plays its vendor, here those of the shipped ones. */

const folder = temporaryFolder("described-sandbox")
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
writeFileSync(
  catalog,
  JSON.stringify({
    vendors: ["bfl", "byteplus", "elevenlabs", "luma", "runway", meter, studio]
  })
)

const pathOf = (model: string, vendor = "runway") => `/vendors/${vendor}/v1/${model}/generation`
const image = `data:image/png;base64,${pixel.toString("base64")}`

const formatAt = (url: string | undefined) =>
  Effect.promise(async () => sniff(new Uint8Array(await (await fetch(url ?? "")).arrayBuffer())))

describe("a described vendor without a key", () => {
  afterAll(() => rmSync(folder, { recursive: true }))
  layer(runningGateway({ CATALOG_FILE: catalog }), {
    excludeTestServices: true,
    timeout: "60 seconds"
  })((it) => {
    it.effect("makes pictures and videos, is marked as sandbox, and charges what is quoted", () =>
      Effect.gen(function* () {
        const orders: ReadonlyArray<readonly [string, object, string, "images" | "videos"]> = [
          ["gen4_image", { prompt: "A lighthouse", ratio: "1280:720" }, "5.00", "images"],
          ["gen4_image", { prompt: "A lighthouse", images: [image, image] }, "8.00", "images"],
          ["gen4.5", { prompt: "A lighthouse", duration: 2 }, "24.00", "videos"],
          ["gen4_turbo", { image, duration: 2 }, "10.00", "videos"]
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

    it.effect("so do the other shipped vendors", () =>
      Effect.gen(function* () {
        const prompt = "A lighthouse"
        const frames = { start_frame: image, end_frame: image }
        const orders: ReadonlyArray<readonly [string, string, object, string, string]> = [
          ["bfl", "flux-2-flex", { prompt, width: 1024, height: 1024 }, "10.00", "PNG"],
          ["bfl", "flux-kontext-pro", { prompt, images: [image] }, "4.00", "PNG"],
          ["bfl", "flux-kontext-max", { prompt }, "8.00", "PNG"],
          ["elevenlabs", "sound-effects", { prompt, duration: 1.5 }, "12.00", "WAV"],
          ["byteplus", "seedance-2-0", { prompt, duration: 4 }, "63.98", "MP4"],
          ["byteplus", "seedream-5-0-lite", { prompt }, "3.50", "PNG"],
          ["byteplus", "seedream-4-5", { prompt, images: [image], size: "4K" }, "4.00", "PNG"],
          ["luma", "uni-1", { prompt }, "4.04", "PNG"],
          ["luma", "uni-1-max", { prompt, image, images: [image, image] }, "10.90", "PNG"],
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
          const shown = yield* call(`${path}/${task.task_info.id}`)
          assert.strictEqual(shown.headers.get("x-service-cost"), price)
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

    it.effect("is charged by the seconds that it rendered, with a job and without one", () =>
      Effect.gen(function* () {
        for (const model of ["film", "clip"]) {
          const path = pathOf(model, "meter")
          const task = yield* finishedTask(path, { prompt: "A lighthouse", seconds: 2 })
          assert.strictEqual(task.task_info.status, "completed", JSON.stringify(task))
          const shown = yield* call(`${path}/${task.task_info.id}`)
          assert.strictEqual(shown.headers.get("x-service-cost"), "3.00")
        }
      })
    )

    it.effect("takes uploads, forms of model ids and results below a member", () =>
      Effect.gen(function* () {
        const task = yield* finishedTask(pathOf("paint", "studio"), {
          prompt: "A lighthouse",
          image
        })
        assert.strictEqual(task.task_info.status, "completed", JSON.stringify(task))
        assert.strictEqual(yield* formatAt(task.images?.[0]), "PNG")
      })
    )

    it.effect("its refusals and failures are those of the description", () =>
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

    it.effect(
      "media that break a rule of its file are refused at create, with their pointers",
      () =>
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
  })
})
