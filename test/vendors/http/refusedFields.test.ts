import { assert, describe } from "@effect/vitest"
import { Effect } from "effect"
import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { liveLayer } from "../../support/liveLayer.ts"
import { localServer } from "../../support/localServer.ts"
import { base64, png } from "../../support/media.ts"
import { call, finishedTask, json, runningGateway } from "../../support/running.ts"
import { temporaryFolder } from "../../support/temporaryFolder.ts"

/** The example of docs/catalog.md, and a video model with its own sizes. */
const example = JSON.parse(
  /```json\n([\s\S]*?)```/u.exec(readFileSync("docs/catalog.md", "utf8"))?.[1] ?? ""
)
const video = { label: "image-to-video-spark", vendor: "openai", adapter: "openai-video" }
const file = join(temporaryFolder("refused"), "catalog.json")
writeFileSync(
  file,
  JSON.stringify({ add: [...example.add, { ...video, model: "sora", upstreamModel: "sora-2" }] })
)

const flux = "/vendors/fal/v1/flux-dev/generation"
const sora = "/vendors/openai/v1/sora/generation"

interface Problem {
  readonly code: number
  readonly errors: ReadonlyArray<{ readonly pointer: string; readonly detail: string }>
}

const faultsOf = Effect.fnUntraced(function* (path: string, body: object) {
  const response = yield* call(path, json(body))
  const problem = (yield* Effect.promise(() => response.json())) as Problem
  assert.strictEqual(response.status, 400, JSON.stringify(problem))
  assert.strictEqual(problem.code, 2001)
  return problem.errors
})

const pointersOf = (path: string, body: object) =>
  Effect.map(faultsOf(path, body), (faults) => faults.map(({ pointer }) => pointer))

const statusOf = (path: string, body: object) =>
  Effect.map(call(path, json(body)), ({ status }) => status)

liveLayer(runningGateway({ CATALOG_FILE: file }))((it) => {
  /** docs/catalog.md#input-of-an-added-model */
  describe("a field that the upstream model does not support", () => {
    it.effect("is refused at create and in a quote, with all other faults of the body", () =>
      Effect.gen(function* () {
        const body = { prompt: "p", negative_prompt: "rain" }
        const [fault] = yield* faultsOf(flux, body)
        assert.strictEqual(fault?.pointer, "#/negative_prompt")
        assert.match(fault?.detail ?? "", /flux-dev does not support this field/u)
        assert.deepEqual(yield* pointersOf(`${flux}?dry_run=true`, body), ["#/negative_prompt"])
        assert.deepEqual(yield* pointersOf(flux, { prompt: "p", prompt_extend: true, n: 9 }), [
          "#/n",
          "#/prompt_extend"
        ])
      })
    )

    it.effect("is accepted if it requests nothing", () =>
      Effect.gen(function* () {
        const path = `${flux}?dry_run=true`
        assert.strictEqual(yield* statusOf(path, { prompt: "p", negative_prompt: "" }), 200)
        assert.strictEqual(yield* statusOf(path, { prompt: "p", safety_filter: true }), 200)
        assert.strictEqual(yield* statusOf(path, { prompt: "p", n: 2, seed: 7 }), 200)
        assert.strictEqual(yield* statusOf(path, { prompt: "p" }), 200)
      })
    )

    it.effect("is not in the schema of the body", () =>
      Effect.gen(function* () {
        const response = yield* call("/manage/v1/models?limit=100")
        const { data } = (yield* Effect.promise(() => response.json())) as {
          data: ReadonlyArray<{ model: string; body_schema: { properties: object } }>
        }
        const fields = (model: string) =>
          Object.keys(data.find((it) => it.model === model)?.body_schema.properties ?? {})
        assert.deepEqual(fields("flux-dev").toSorted(), [
          "metadata",
          "n",
          "prompt",
          "safety_filter",
          "seed",
          "size",
          "webhook"
        ])
        assert.include(fields("text-to-image-preview"), "negative_prompt")
      })
    )
  })

  /** docs/reference/vendors.md#openai-videos */
  describe("a picture for a video model with fixed sizes", () => {
    const picture = (width: number, height: number) => base64(png({ width, height }))
    const body = (image: string, resolution = "720P") => ({ prompt: "p", image, resolution })

    it.effect("is refused at create unless it has one of the sizes of the resolution", () =>
      Effect.gen(function* () {
        const [fault, ...more] = yield* faultsOf(sora, body(picture(800, 600)))
        assert.isEmpty(more)
        assert.strictEqual(fault?.pointer, "#/image")
        assert.match(fault?.detail ?? "", /1280\*720 or 720\*1280 pixels.* got 800\*600/u)
        assert.deepEqual(yield* pointersOf(sora, body(picture(1280, 720), "1080P")), ["#/image"])
        const path = `${sora}?dry_run=true`
        assert.strictEqual(yield* statusOf(path, body(picture(1280, 720))), 200)
        assert.strictEqual(yield* statusOf(path, body(picture(720, 1280))), 200)
        assert.strictEqual(yield* statusOf(path, body(picture(1792, 1024), "1080P")), 200)
      })
    )

    it.effect("fails its task with 400 before anything is bought if it came by URL", () =>
      Effect.gen(function* () {
        const bytes = Buffer.from(png({ width: 800, height: 600 }))
        const url = yield* localServer((_request, response) => void response.end(bytes))
        const { task_info } = yield* finishedTask(sora, body(`${url}/a.png`))
        assert.strictEqual(task_info.error?.code, 400)
        assert.match(task_info.error?.detail ?? "", /#\/image: .*got 800\*600/u)
      })
    )
  })
})
