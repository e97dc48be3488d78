import { createAlibaba } from "@ai-sdk/alibaba"
import { experimental_generateVideo as generateVideo } from "ai"
import { assert, describe, it } from "vitest"
import { dashscope } from "../../../src/testing/vendors/DashScopeProtocol.ts"
import { upstreamOfTests } from "../../support/mockVendors.ts"
import { pixel, Upstream } from "../../support/upstreams/Upstream.ts"
import { videoDownload } from "../support/downloads.ts"
import { videoModel } from "../support/models.ts"

const upstream = await upstreamOfTests(Upstream.start(dashscope))

const provider = (apiKey = upstream.key) => createAlibaba({ apiKey, videoBaseURL: upstream.url })
const make = (model: string, more: object = {}) =>
  generateVideo({
    model: videoModel(provider().video(model)),
    prompt: "a harbour",
    poll: { intervalMs: 1 },
    download: videoDownload(upstream),
    ...more
  })

const url = "https://example.com/first.png"
const start = { prompt: { text: "a harbour", image: new Uint8Array(pixel) } }

describe("@ai-sdk/alibaba and the DashScope mock", () => {
  it("makes a video of a size from text", async () => {
    const made = await make("wan2.6-t2v", { resolution: "1280x720", duration: 5 })
    assert.deepEqual(Buffer.from(made.video.uint8Array), pixel)
    const { headers, json } = upstream.lastSubmit
    assert.strictEqual(headers["x-dashscope-async"], "enable")
    assert.deepEqual(json.parameters, { duration: 5, size: "1280*720" })
    const metadata = made.providerMetadata["alibaba"]
    assert.strictEqual(metadata?.["taskId"], [...upstream.jobs.keys()][0])
  })

  it("makes a video from an image", async () => {
    await make("wan2.6-i2v", { ...start, resolution: "1280x720" })
    const { input, parameters } = upstream.lastSubmit.json
    assert.strictEqual(input.img_url, pixel.toString("base64"))
    assert.deepEqual(parameters, { resolution: "720P" })
  })

  it("makes a video from references", async () => {
    const options = { alibaba: { referenceUrls: [url] } }
    await make("wan2.6-r2v", { providerOptions: options })
    assert.deepEqual(upstream.lastSubmit.json.input.reference_urls, [url])
  })

  it("makes one with the newer families: tiers, ratio and media instead of a size", async () => {
    await make("wan2.7-t2v", { resolution: "1920x1080", aspectRatio: "16:9" })
    const words = upstream.lastSubmit.json
    assert.deepEqual(words.parameters, { resolution: "1080P", ratio: "16:9" })
    await make("wan3.0", {
      ...start,
      resolution: "832x480",
      providerOptions: { alibaba: { audio: false } }
    })
    const { input, parameters } = upstream.lastSubmit.json
    assert.deepEqual(parameters, { resolution: "480P", audio: false })
    assert.deepEqual(
      input.media.map(({ type }: { type: string }) => type),
      ["first_frame"]
    )
  })

  it("has the vendor's message in its errors", async () => {
    const stranger = generateVideo({
      model: videoModel(provider("sk-no").video("wan2.6-t2v")),
      prompt: "a harbour",
      maxRetries: 0
    })
    assert.include(await stranger.catch(String), "Invalid API-key provided.")
    upstream.ending = "failed"
    assert.include(await make("wan2.6-t2v").catch(String), "inference error")
  })
})
