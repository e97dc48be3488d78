import { createAlibaba } from "@ai-sdk/alibaba"
import { createGoogle } from "@ai-sdk/google"
import { experimental_generateVideo as generateVideo, generateImage } from "ai"
import OpenAI, { toFile } from "openai"
import { afterEach, assert, describe, it } from "vitest"
import { dashscope } from "../../../src/testing/vendors/DashScopeProtocol.ts"
import { gemini } from "../../../src/testing/vendors/GeminiProtocol.ts"
import { openai } from "../../../src/testing/vendors/OpenAiProtocol.ts"
import { picture, request } from "../../support/upstreams/accounts.ts"
import { pixel, Upstream } from "../../support/upstreams/Upstream.ts"
import type { Protocol } from "../../support/upstreams/Upstream.ts"
import { videoDownload } from "../support/downloads.ts"
import { videoModel } from "../support/models.ts"
import { differences, submitBy } from "../support/requests.ts"
import type { Account } from "../support/requests.ts"

// Bodies that depend on the upstream model, as in requests.test.ts: the client's against the adapter's.

let upstream: Upstream
const at = async (
  protocol: Protocol,
  adapter: Account["adapter"],
  base: string
): Promise<Account> => {
  upstream = await Upstream.start(protocol)
  return { adapter, upstream, base }
}
afterEach(() => upstream.close())

const prompt = "a harbour"
const seed = 7

describe("DashScope", () => {
  const data = pixel.toString("base64")
  const start = () => at(dashscope, "dashscope-async", "/api/v1")
  const words = { prompt, duration: 5, prompt_extend: true, seed, size: "1280*720", audio: true }
  const still = { prompt, duration: 5, prompt_extend: true, seed, image: "artifact:1" }
  const media = [picture("#/image")]
  const make = (model: string, options: object, more: object) =>
    generateVideo({
      model: videoModel(
        createAlibaba({ apiKey: upstream.key, videoBaseURL: upstream.url }).video(model)
      ),
      prompt,
      duration: 5,
      seed,
      providerOptions: { alibaba: { promptExtend: true, watermark: false, ...options } },
      poll: { intervalMs: 1 },
      download: videoDownload(upstream),
      ...more
    })
  /** The AI SDK generates one per call; DashScope documents none. */
  const own = { "header.idempotency-key": "" }
  const found = (ours: Parameters<typeof differences>[0]) =>
    Object.entries(differences(ours, upstream.lastSubmit)).filter(([name]) => !(name in own))

  it("gets a tier and a ratio instead of a size for wan2.7 from text, and no audio flag", async () => {
    const body = { ...words, negative_prompt: "rain" }
    const ours = await submitBy(await start(), request("text-to-video-spark", "wan2.7-t2v", body))
    await make("wan2.7-t2v", { negativePrompt: "rain" }, { resolution: "1280x720" })
    assert.deepEqual(found(ours), [])
  })

  it("gets the same for wan3.0 from text, with an audio flag", async () => {
    const ours = await submitBy(
      await start(),
      request("text-to-video-spark", "wan3.0-video", words)
    )
    await make("wan3.0-video", { audio: true }, { resolution: "1280x720" })
    assert.deepEqual(found(ours), [])
  })

  it("gets a first frame in the media for wan3.0 from an image", async () => {
    const body = { ...still, resolution: "720P", audio: true }
    const ours = await submitBy(
      await start(),
      request("image-to-video-spark", "wan3.0-video", body, { media })
    )
    await make(
      "wan3.0-video",
      { audio: true },
      { resolution: "720P", prompt: { text: prompt, image: new Uint8Array(pixel) } }
    )
    assert.deepEqual(found(ours), [])
  })

  it("gets the documented media for wan2.7 from an image, where the client sends the older field", async () => {
    const body = { ...still, resolution: "720P", audio: true }
    const ours = await submitBy(
      await start(),
      request("image-to-video-spark", "wan2.7-i2v", body, { media })
    )
    await make(
      "wan2.7-i2v",
      {},
      { resolution: "720P", prompt: { text: prompt, image: new Uint8Array(pixel) } }
    )
    assert.deepEqual(Object.fromEntries(found(ours)), {
      "body.input.img_url": `– | "${data}"`,
      "body.input.media.0.type": '"first_frame" | –',
      "body.input.media.0.url": `"data:image/png;base64,${data}" | –`
    })
  })
})

describe("OpenAI", () => {
  const client = () => new OpenAI({ apiKey: upstream.key, baseURL: `${upstream.url}/v1` })
  const images = () => at(openai, "openai-image", "/v1")

  it("generates an image of any size that gpt-image-2 accepts", async () => {
    const model = "gpt-image-2"
    const body = { prompt, size: "1664*928" }
    const ours = await submitBy(await images(), request("text-to-image-max", model, body))
    await client().images.generate({ model, prompt, n: 1, size: "1664x928" })
    assert.deepEqual(differences(ours, upstream.lastSubmit), {})
  })

  it("edits an image to any size that gpt-image-2 accepts", async () => {
    const model = "gpt-image-2"
    const body = { prompt, n: 2, size: "1280*1280", images: ["artifact:1"] }
    const media = [picture("#/images/0")]
    const ours = await submitBy(await images(), request("image-edit", model, body, { media }))
    const image = [await toFile(pixel, "a.png", { type: "image/png" })]
    await client().images.edit({ model, prompt, n: 2, size: "1280x1280", image })
    assert.deepEqual(differences(ours, upstream.lastSubmit), {})
  })

  it("chooses the size if the body leaves it to the model", async () => {
    const model = "gpt-image-2.5-flare"
    const body = { prompt, n: 1, size: null }
    const ours = await submitBy(await images(), request("text-to-image-preview", model, body))
    await client().images.generate({ model, prompt, n: 1 })
    assert.deepEqual(differences(ours, upstream.lastSubmit), {})
  })

  it("gets a video without an image as a form, too", async () => {
    const account = await at(openai, "openai-video", "/v1")
    const body = { prompt, size: "720*1280", duration: 10 }
    const ours = await submitBy(account, request("text-to-video-spark", "sora-2", body))
    await client().videos.create({ model: "sora-2", prompt, seconds: "12", size: "720x1280" })
    assert.deepEqual(differences(ours, upstream.lastSubmit), {})
  })
})

describe("Gemini", () => {
  it("gets the seed of the body, as from @ai-sdk/google", async () => {
    const model = "gemini-3-pro-image"
    const account = await at(gemini, "gemini-image", "")
    const body = { prompt, images: ["artifact:1"], aspect_ratio: "16:9", seed }
    const media = [picture("#/images/0")]
    const ours = await submitBy(account, request("image-edit-pro", model, body, { media }))
    const provider = createGoogle({ apiKey: upstream.key, baseURL: `${upstream.url}/v1beta` })
    await generateImage({
      model: provider.image(model),
      prompt: { text: prompt, images: [new Uint8Array(pixel)] },
      aspectRatio: "16:9",
      seed
    })
    // That client sends no text with the picture
    assert.deepEqual(differences(ours, upstream.lastSubmit), {
      "body.generationConfig.responseModalities.0": '"TEXT" | "IMAGE"',
      "body.generationConfig.responseModalities.1": '"IMAGE" | –'
    })
  })
})
