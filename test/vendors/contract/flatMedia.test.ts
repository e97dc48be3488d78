import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { afterAll, beforeAll, beforeEach } from "vitest"
import { fal } from "../../../src/testing/vendors/FalProtocol.ts"
import { replicate } from "../../../src/testing/vendors/ReplicateProtocol.ts"
import { accountAt, jobsLike, picture, request } from "../../support/upstreams/accounts.ts"
import { pixel, Upstream } from "../../support/upstreams/Upstream.ts"

const dataUri = `data:image/png;base64,${pixel.toString("base64")}`
const body = { prompt: "p", image: "artifact:1" }
const input = { fields: { image: "input_image" } }
const label = "image-to-video-spark"

/** docs/reference/vendors.md#fal-queue, docs/reference/vendors.md#replicate-predictions */
describe("media of fal and Replicate", () => {
  let falHost: Upstream
  let replicateHost: Upstream
  beforeAll(async () => {
    falHost = await Upstream.start(fal)
    replicateHost = await Upstream.start(replicate)
  })
  beforeEach(() => {
    falHost.reset()
    replicateHost.reset()
  })
  afterAll(async () => {
    await falHost.close()
    await replicateHost.close()
  })

  const viaFal = Effect.fnUntraced(function* (medium: ReturnType<typeof picture>) {
    const account = yield* accountAt("fal-queue", falHost.url, falHost.key)
    yield* account.submit(request(label, "fal-ai/veo3", body, { input, media: [medium] }))
    return falHost.lastSubmit.json.input_image as unknown
  })
  const viaReplicate = Effect.fnUntraced(function* (
    medium: ReturnType<typeof picture>,
    upstreamModel = "minimax/video-01"
  ) {
    const account = yield* accountAt("replicate", `${replicateHost.url}/v1`, replicateHost.key)
    yield* account.submit(request(label, upstreamModel, body, { input, media: [medium] }))
    return replicateHost.lastSubmit.json.input.input_image as unknown
  })

  it.effect("are sent as the client's URL if it is https, else as a data URI", () =>
    Effect.gen(function* () {
      const url = "https://example.com/a.png"
      for (const via of [viaFal, viaReplicate]) {
        assert.strictEqual(yield* via(picture("#/image", url)), url)
        assert.strictEqual(yield* via(picture("#/image", "http://example.com/a.png")), dataUri)
        assert.strictEqual(yield* via(picture("#/image")), dataUri)
      }
    })
  )

  it.effect("are first uploaded to Replicate if they are larger than 1 MiB", () =>
    Effect.gen(function* () {
      const bytes = new Uint8Array(1024 * 1024 + 1)
      const large = { ...picture("#/image"), size: bytes.length, bytes: Effect.succeed(bytes) }
      const url = `${replicateHost.url}/v1/files/${bytes.length}-image.png`
      assert.strictEqual(yield* viaReplicate(large), url)
      const [upload, ...others] = replicateHost.seen
      assert.strictEqual(upload?.path, "/v1/files")
      assert.strictEqual(upload?.form.get("content")?.[0]?.type, "image/png")
      assert.lengthOf(others, 1)
    })
  )

  it.effect("can be uploaded again after a failure, because nothing has been bought", () =>
    Effect.gen(function* () {
      const large = { ...picture("#/image"), size: 2_000_000 }
      for (const fault of ["drop-after", "edge-502", "unavailable"] as const) {
        replicateHost.askFaults = [fault]
        const error = yield* Effect.flip(viaReplicate(large))
        assert.strictEqual(error.class, "RETRYABLE", error.message)
        assert.strictEqual(replicateHost.paidSubmits, 0)
      }
    })
  )
})

describe("a submit to Replicate", () => {
  let upstream: Upstream
  beforeAll(async () => {
    upstream = await Upstream.start(replicate)
  })
  afterAll(() => upstream.close())

  const version = "5c7d5dc6dd8bf75c1acaa8565735e7986bc5b66206b55cca93cb72c9bf15ccaa"
  for (const [what, upstreamModel, path, named] of [
    ["an official model", "owner/name", "/v1/models/owner/name/predictions", undefined],
    ["a version of a community model", `owner/name:${version}`, "/v1/predictions", version],
    ["a bare version", version, "/v1/predictions", version],
    ["a deployment", "deployments/acme/pictures", "/v1/deployments/acme/pictures/predictions"]
  ] as const) {
    it.effect(`runs ${what}: ${upstreamModel.slice(0, 30)}`, () =>
      Effect.gen(function* () {
        const account = yield* accountAt("replicate", `${upstream.url}/v1`, upstream.key)
        yield* account.submit(request("text-to-image-preview", upstreamModel, { prompt: "p" }))
        assert.strictEqual(upstream.lastSubmit.path, path)
        assert.strictEqual(upstream.lastSubmit.json.version, named)
      })
    )
  }

  it.effect(
    "of a deployment does not match a job of the model behind it, nor the other way round",
    () =>
      Effect.gen(function* () {
        upstream.reset()
        const account = yield* accountAt("replicate", `${upstream.url}/v1`, upstream.key)
        const job = (upstreamModel: string) =>
          request("text-to-image-preview", upstreamModel, { prompt: "p" })
        const [deployed, plain] = [job("deployments/acme/pictures"), job("acme/hidden")]
        const found = (request: typeof plain) =>
          Effect.map(jobsLike(account, request, Date.now()), (all) => all.length)
        yield* account.submit(deployed)
        assert.strictEqual(yield* found(plain), 0)
        assert.strictEqual(yield* found(deployed), 1)
        yield* account.submit(plain)
        assert.strictEqual(yield* found(plain), 1)
        assert.strictEqual(yield* found(deployed), 1)
      })
  )
})
