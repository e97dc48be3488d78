import { createReplicate } from "@ai-sdk/replicate"
import { experimental_generateVideo as generateVideo, generateImage } from "ai"
import Replicate, { validateWebhook } from "replicate"
import { assert, describe, it } from "vitest"
import { replicateHeaders } from "../../../src/testing/vendors/Callbacks.ts"
import { replicate } from "../../../src/testing/vendors/ReplicateProtocol.ts"
import { upstreamOfTests } from "../../support/mockVendors.ts"
import { pixel, Upstream } from "../../support/upstreams/Upstream.ts"
import { videoDownload } from "../support/downloads.ts"
import { videoModel } from "../support/models.ts"

const upstream = await upstreamOfTests(Upstream.start(replicate))

const client = () =>
  new Replicate({ auth: upstream.key, baseUrl: `${upstream.url}/v1`, useFileOutput: false })

const model = "black-forest-labs/flux-schnell"
const version = "5c7d5dc6dd8bf75c1acaa8565735e7986bc5b66206b55cca93cb72c9bf15ccaa"
const input = { prompt: "a harbour", num_outputs: 2 }
const interval = 1

describe("the replicate package and the Replicate mock", () => {
  it("runs an official model, and waits for it within one request", async () => {
    const output = (await client().run(model, { input })) as Array<string>
    assert.strictEqual(output.length, 2)
    assert.strictEqual(upstream.lastSubmit.headers["prefer"], "wait")
    assert.strictEqual(upstream.paidSubmits, 1)
    assert.deepEqual(
      upstream.seen.map(({ path }) => path),
      [`/v1/models/${model}/predictions`]
    )
  })

  it("runs a version and polls for it", async () => {
    const statuses: Array<string> = []
    const output = (await client().run(
      `owner/community:${version}`,
      { input, wait: { mode: "poll", interval } },
      ({ status }) => statuses.push(status)
    )) as Array<string>
    assert.strictEqual(output.length, 2)
    assert.deepEqual(statuses, ["starting", "starting", "succeeded"])
    assert.strictEqual(upstream.lastSubmit.json.version, version)
  })

  it("runs an official model at the path for versions, and a deployment", async () => {
    const named = await client().predictions.create({ version: model, input })
    assert.strictEqual(named.model, model)
    const own = await client().deployments.predictions.create("acme", "poster", { input })
    assert.strictEqual(own.deployment, "acme/poster")
    const done = await client().wait(own, { interval })
    assert.strictEqual(done.status, "succeeded")
  })

  it("reads every member that a prediction always has", async () => {
    const webhook = "https://example.com/callback"
    const made = await client().predictions.create({
      model,
      input,
      webhook,
      webhook_events_filter: ["completed"]
    })
    assert.include(made, { status: "starting", model, source: "api", data_removed: false, webhook })
    assert.deepEqual(made.input, input)
    assert.isFalse(Number.isNaN(Date.parse(made.created_at)))
    assert.strictEqual(made.urls.cancel, `${upstream.url}/v1/predictions/${made.id}/cancel`)
    const done = await client().wait(made, { interval })
    assert.isNumber(done.metrics?.predict_time)
    assert.isFalse(Number.isNaN(Date.parse(done.completed_at ?? "")))
  })

  it("cancels, and lists page by page", async () => {
    upstream.pageSize = 2
    const ids = []
    for (let made = 0; made < 3; made += 1) {
      ids.push((await client().predictions.create({ model, input })).id)
    }
    assert.strictEqual((await client().predictions.cancel(ids[0] ?? "")).status, "canceled")
    const listed = []
    const list = client()
    for await (const page of list.paginate(list.predictions.list)) listed.push(...page)
    assert.deepEqual(
      listed.map(({ id }) => id),
      ids.toReversed()
    )
  })

  it("uploads a file before it uses it", async () => {
    const image = new Blob([new Uint8Array(pixel)], { type: "image/png" })
    await client().predictions.create({ model, input: { ...input, image } })
    const { image: url } = upstream.lastSubmit.json.input
    assert.match(url, /^http:\/\/127\.0\.0\.1:\d+\/v1\/files\/[^/]+$/u)
  })

  it("verifies the callbacks that the mock signs", async () => {
    const { key } = await client().webhooks.default.secret.get()
    const body = JSON.stringify({ id: "p1", status: "succeeded" })
    const headers = replicateHeaders({ at: 1_760_000_000, body })
    const callback = {
      id: headers["webhook-id"],
      timestamp: headers["webhook-timestamp"],
      signature: headers["webhook-signature"],
      body,
      secret: key
    }
    assert.isTrue(await validateWebhook(callback))
    assert.isFalse(await validateWebhook({ ...callback, body: `${body} ` }))
  })

  it("has the vendor's message in its errors", async () => {
    const stranger = new Replicate({ auth: "r8_no", baseUrl: `${upstream.url}/v1` })
    const message = await stranger.predictions.create({ model, input }).catch(String)
    assert.include(message, "401")
    assert.include(message, "authentication token")
    upstream.ending = "failed"
    assert.include(await client().run(model, { input }).catch(String), "CUDA out of memory")
  })
})

describe("@ai-sdk/replicate and the Replicate mock", () => {
  const provider = () => createReplicate({ apiToken: upstream.key, baseURL: `${upstream.url}/v1` })

  it("makes images and downloads them", async () => {
    const { images } = await generateImage({
      model: provider().image(model),
      prompt: "a harbour",
      aspectRatio: "16:9",
      n: 1
    })
    assert.deepEqual(
      images.map(({ uint8Array }) => Buffer.from(uint8Array)),
      [pixel]
    )
  })

  it("makes a video and downloads it", async () => {
    const { video } = await generateVideo({
      model: videoModel(provider().video("minimax/video-01")),
      prompt: "a harbour",
      poll: { intervalMs: 1 },
      download: videoDownload(upstream)
    })
    assert.deepEqual(Buffer.from(video.uint8Array), pixel)
  })
})
