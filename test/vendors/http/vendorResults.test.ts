import { assert, describe } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { afterAll, beforeAll, beforeEach } from "vitest"
import { fal } from "../../../src/testing/vendors/FalProtocol.ts"
import { openai } from "../../../src/testing/vendors/OpenAiProtocol.ts"
import { liveLayer } from "../../support/liveLayer.ts"
import { call, finishedTask, runningGateway } from "../../support/running.ts"
import { temporaryFolder } from "../../support/temporaryFolder.ts"
import { Upstream } from "../../support/upstreams/Upstream.ts"

const folder = temporaryFolder("vendor-results")
const catalog = join(folder, "catalog.json")
const image = { label: "text-to-image-preview", vendor: "test" }
writeFileSync(
  catalog,
  JSON.stringify({
    add: [
      {
        ...image,
        model: "flux",
        adapter: "fal-queue",
        upstreamModel: "fal-ai/flux/dev",
        input: { fields: { n: "num_images" } }
      },
      { ...image, model: "gpt", adapter: "openai-image", upstreamModel: "gpt-image-2" }
    ]
  })
)
const flux = "/vendors/test/v1/flux/generation"
const gpt = "/vendors/test/v1/gpt/generation"

/** docs/reference/vendors.md#results-of-vendors */
describe("the results of a vendor", () => {
  let upstreams: { readonly fal: Upstream; readonly openai: Upstream }
  beforeAll(async () => {
    upstreams = { fal: await Upstream.start(fal), openai: await Upstream.start(openai) }
  })
  beforeEach(() => {
    for (const upstream of Object.values(upstreams)) {
      upstream.reset()
      upstream.runningPolls = 0
    }
  })
  afterAll(async () => {
    for (const upstream of Object.values(upstreams)) await upstream.close()
  })
  const gateway = Layer.unwrap(
    Effect.sync(() =>
      runningGateway({
        CATALOG_FILE: catalog,
        FAL_API_KEY: upstreams.fal.key,
        FAL_BASE_URL: upstreams.fal.url,
        OPENAI_API_KEY: upstreams.openai.key,
        OPENAI_BASE_URL: upstreams.openai.url
      })
    )
  )
  const settled = Effect.flatMap(call("/manage/v1/wallet"), (got) =>
    Effect.promise(async () => {
      const wallet = (await got.json()) as { settled_balance: string; held_balance: string }
      assert.strictEqual(wallet.held_balance, "0.00")
      return Number(wallet.settled_balance)
    })
  )
  /** The charge and the outcome of a task. */
  const paid = Effect.fnUntraced(function* (path: string, body: object) {
    const before = yield* settled
    const { images = [], task_info } = yield* finishedTask(path, body)
    return { images, code: task_info.error?.code, credits: before - (yield* settled) }
  })
  const surplusOf = Effect.flatMap(call("/metrics"), (got) =>
    Effect.promise(async () => {
      const series = /^gateway_vendor_surplus_results_total\{.*vendor="test".*\} (\d+)$/mu
      return Number(series.exec(await got.text())?.[1] ?? 0)
    })
  )

  liveLayer(gateway)((it) => {
    it.effect("do not include an address from the prompt that the vendor echoes", () =>
      Effect.gen(function* () {
        // Nothing listens there, so a download would fail the paid task
        const prompt = "http://127.0.0.1:9/second.png"
        const { code, credits, images } = yield* paid(flux, { prompt, n: 1 })
        assert.deepEqual(
          { code, count: images.length, credits },
          {
            code: undefined,
            count: 1,
            credits: 3
          }
        )
      })
    )

    it.effect("are 3001 without a charge if the only image is flagged as unsafe", () =>
      Effect.gen(function* () {
        upstreams.fal.ending = "flagged"
        const { code, credits } = yield* paid(flux, { prompt: "p", n: 1 })
        assert.deepEqual({ code, credits }, { code: 3001, credits: 0 })
      })
    )

    it.effect("are the images that are not flagged, and only these are charged", () =>
      Effect.gen(function* () {
        upstreams.fal.ending = "flagged"
        const { credits, images } = yield* paid(flux, { prompt: "p", n: 3 })
        assert.deepEqual({ count: images.length, credits }, { count: 2, credits: 6 })
      })
    )

    for (const [path, name] of [
      [flux, "fal"],
      [gpt, "openai"]
    ] as const) {
      it.effect(`of ${name} are cut to the ordered number, and the surplus is counted once`, () =>
        Effect.gen(function* () {
          const before = yield* surplusOf
          upstreams[name].ending = "surplus"
          const { credits, images } = yield* paid(path, { prompt: "p", n: 2 })
          assert.deepEqual({ count: images.length, credits }, { count: 2, credits: 6 })
          assert.strictEqual((yield* surplusOf) - before, 1)
        })
      )
    }
  })
})
