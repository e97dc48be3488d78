import { assert, describe, layer } from "@effect/vitest"
import { Effect, Layer, Result } from "effect"
import { rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { afterAll, beforeAll, beforeEach } from "vitest"
import { falModel, replicateModel } from "../../../src/catalog/jobs/PublishedModel.ts"
import { fal } from "../../../src/testing/vendors/FalProtocol.ts"
import { replicate } from "../../../src/testing/vendors/ReplicateProtocol.ts"
import { falImages, replicateCaption, replicateImages } from "../../support/publishedModels.ts"
import { call, finishedTask, json, runningGateway } from "../../support/running.ts"
import { temporaryFolder } from "../../support/temporaryFolder.ts"
import { pixel, Upstream } from "../../support/upstreams/Upstream.ts"

/** docs/catalog.md#models-with-a-body-of-their-own: imported models of fal and Replicate in the whole service. */

const folder = temporaryFolder("media-models")
const catalog = join(folder, "catalog.json")

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
writeFileSync(catalog, JSON.stringify({ mediaModels: [brush, draft, flux, caption] }))
afterAll(() => rmSync(folder, { recursive: true }))

const picture = `data:image/png;base64,${pixel.toString("base64")}`
const bodyOf = (answer: Response) =>
  Effect.promise(() => answer.json() as Promise<Record<string, unknown>>)
const costOf = (path: string, id: string) =>
  Effect.map(call(`${path}/${id}`), (shown) => shown.headers.get("x-service-cost"))

describe("an imported model", () => {
  let upstreams: readonly [Upstream, Upstream]
  beforeAll(async () => {
    upstreams = [await Upstream.start(fal), await Upstream.start(replicate)]
  })
  beforeEach(() => {
    for (const upstream of upstreams) {
      upstream.reset()
      upstream.runningPolls = 0
    }
  })
  afterAll(() => Promise.all(upstreams.map((it) => it.close())))
  const gateway = Layer.unwrap(
    Effect.sync(() =>
      runningGateway({
        CATALOG_FILE: catalog,
        FAL_API_KEY: upstreams[0].key,
        FAL_BASE_URL: upstreams[0].url,
        REPLICATE_API_KEY: upstreams[1].key,
        REPLICATE_BASE_URL: `${upstreams[1].url}/v1`
      })
    )
  )

  layer(gateway, { excludeTestServices: true, timeout: "60 seconds" })((it) => {
    it.effect("of fal gets its fields as the vendor names them, and its media inline", () =>
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

    it.effect("refuses what its schema does not allow, and media that are none", () =>
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

    it.effect("of Replicate is found again after a lost response, by its own fields", () =>
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

    it.effect("of JSON has the whole output as its result", () =>
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

describe("without a key", () => {
  layer(runningGateway({ CATALOG_FILE: catalog }), {
    excludeTestServices: true,
    timeout: "60 seconds"
  })((it) => {
    it.effect("is charged by its capture as with a key, not by its hold", () =>
      Effect.gen(function* () {
        const path = "/vendors/fal/v1/draft/generation"
        const body = { prompt: "A lighthouse", image_urls: [picture], num_images: 2 }
        const quoted = yield* Effect.flatMap(call(`${path}?dry_run=true`, json(body)), bodyOf)
        assert.deepStrictEqual(quoted["quote"], { amount: "40.00", currency: "credits" })
        const task = yield* finishedTask(path, body)
        assert.strictEqual(yield* costOf(path, task.task_info.id), "8.00")
      })
    )

    it.effect("the simulator makes as many results as are ordered, whatever the fields are", () =>
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
