import { createAlibaba } from "@ai-sdk/alibaba"
import { createFal } from "@ai-sdk/fal"
import { createGoogle } from "@ai-sdk/google"
import { createOpenAI } from "@ai-sdk/openai"
import { createReplicate } from "@ai-sdk/replicate"
import { createFalClient } from "@fal-ai/client"
import { GoogleGenAI } from "@google/genai"
import { experimental_generateVideo as generateVideo, generateImage } from "ai"
import OpenAI, { toFile } from "openai"
import Replicate from "replicate"
import { afterEach, assert, describe, it } from "vitest"
import { dashscope } from "../../../src/testing/vendors/DashScopeProtocol.ts"
import { fal } from "../../../src/testing/vendors/FalProtocol.ts"
import { gemini } from "../../../src/testing/vendors/GeminiProtocol.ts"
import { openai } from "../../../src/testing/vendors/OpenAiProtocol.ts"
import { replicate } from "../../../src/testing/vendors/ReplicateProtocol.ts"
import { picture, request } from "../../support/upstreams/accounts.ts"
import { pixel, Upstream } from "../../support/upstreams/Upstream.ts"
import type { Protocol } from "../../support/upstreams/Upstream.ts"
import { videoDownload } from "../support/downloads.ts"
import { fetchAt } from "../support/hosts.ts"
import { videoModel } from "../support/models.ts"
import {
  cancelBy,
  differences,
  differencesOfAll,
  finishBy,
  seenOf,
  submitBy
} from "../support/requests.ts"
import type { Account } from "../support/requests.ts"

// The vendor's client and our adapter build the same job. The differences that are allowed are listed here,
// field by field; any other difference is a fault of the adapter.

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
const callbackUrl = "https://example.com/callback"
const seed = 7

describe("fal", () => {
  const model = "fal-ai/flux/dev"
  const fields = { n: "num_images", size: { to: "image_size", as: "size-object" } } as const
  const input = { fields: { ...fields, seed: "seed" } }
  const job = request(
    "text-to-image-preview",
    model,
    { prompt, n: 2, size: "1280*768", prompt_extend: true, seed, safety_filter: true },
    { input }
  )
  const asked = { prompt, num_images: 2, image_size: { width: 1280, height: 768 }, seed }
  const client = () =>
    createFalClient({
      credentials: upstream.key,
      fetch: fetchAt(upstream, { "https://queue.fal.run": "" })
    })

  it("gets the same submit as from @fal-ai/client, except for its default priority", async () => {
    const ours = await submitBy(await at(fal, "fal-queue", ""), { ...job, callbackUrl })
    await client().queue.submit(model, { webhookUrl: callbackUrl, input: asked })
    assert.deepEqual(differences(ours, upstream.lastSubmit), {
      "header.x-fal-queue-priority": "– | normal"
    })
  })

  it("is polled, read and cancelled as by @fal-ai/client", async () => {
    const account = await at(fal, "fal-queue", "")
    const ours = await seenOf(upstream, () => finishBy(account, job))
    const theirs = await seenOf(upstream, () =>
      client().subscribe(model, { input: asked, pollInterval: 1 })
    )
    // That client announces JSON without a body, and asks for no logs, which is the default
    const idle = { "header.content-type": "– | application/json" }
    assert.deepEqual(differencesOfAll(ours, theirs).slice(1), [
      { ...idle, "query.logs": "– | 0" },
      { ...idle, "query.logs": "– | 0" },
      idle
    ])
    const cancelled = await seenOf(upstream, () => cancelBy(account, job))
    const theirCancel = await seenOf(upstream, async () => {
      const { request_id: requestId } = await client().queue.submit(model, { input: asked })
      await client().queue.cancel(model, { requestId })
    })
    assert.deepEqual(differencesOfAll(cancelled, theirCancel)[1], idle)
  })

  it("gets the same body as from @ai-sdk/fal", async () => {
    const one = { ...job, body: { prompt, n: 1, size: "1280*768", seed } }
    const ours = await submitBy(await at(fal, "fal-queue", ""), one)
    const provider = createFal({ apiKey: upstream.key, baseURL: `${upstream.url}/sync` })
    await generateImage({ model: provider.image(model), prompt, size: "1280x768", seed })
    // It calls the host that returns the result itself
    assert.deepEqual(differences(ours, upstream.lastSubmit), {
      path: `/${model} | /sync/${model}`
    })
  })
})

describe("Replicate", () => {
  const model = "black-forest-labs/flux-schnell"
  const version = "5c7d5dc6dd8bf75c1acaa8565735e7986bc5b66206b55cca93cb72c9bf15ccaa"
  const input = {
    fields: { n: "num_outputs", seed: "seed" },
    constants: { output_format: "png" }
  }
  const body = { prompt, n: 2, size: "1280*768", prompt_extend: true, seed, safety_filter: true }
  const job = (upstreamModel = model) =>
    request("text-to-image-preview", upstreamModel, body, { input })
  const asked = { prompt, num_outputs: 2, seed, output_format: "png" }
  const client = () => new Replicate({ auth: upstream.key, baseUrl: `${upstream.url}/v1` })
  const idle = { "header.content-type": "– | application/json" }

  it("gets the same submits for an official model and a version as from the replicate package", async () => {
    const account = await at(replicate, "replicate", "/v1")
    const official = await submitBy(account, { ...job(), callbackUrl })
    await client().predictions.create({
      model,
      input: asked,
      webhook: callbackUrl,
      webhook_events_filter: ["completed"]
    })
    assert.deepEqual(differences(official, upstream.lastSubmit), {})
    const community = await submitBy(account, job(`owner/name:${version}`))
    await client().predictions.create({ version, input: asked })
    assert.deepEqual(differences(community, upstream.lastSubmit), {})
  })

  it("is polled and cancelled as by the replicate package", async () => {
    const account = await at(replicate, "replicate", "/v1")
    const ours = await seenOf(upstream, () => finishBy(account, job()))
    const theirs = await seenOf(upstream, async () => {
      const made = await client().predictions.create({ model, input: asked })
      await client().wait(made, { interval: 1 })
    })
    assert.deepEqual(differencesOfAll(ours, theirs), [{}, idle, idle])
    const cancelled = await seenOf(upstream, () => cancelBy(account, job()))
    const theirCancel = await seenOf(upstream, async () => {
      const made = await client().predictions.create({ model, input: asked })
      await client().predictions.cancel(made.id)
    })
    assert.deepEqual(differencesOfAll(cancelled, theirCancel), [{}, idle])
  })

  it("gets the same body as from @ai-sdk/replicate", async () => {
    const account = await at(replicate, "replicate", "/v1")
    const ours = await submitBy(account, { ...job(), body: { prompt, n: 1, seed } })
    const provider = createReplicate({ apiToken: upstream.key, baseURL: `${upstream.url}/v1` })
    await generateImage({
      model: provider.image(model),
      prompt,
      seed,
      providerOptions: { replicate: { output_format: "png" } }
    })
    // It waits within a single request
    assert.deepEqual(differences(ours, upstream.lastSubmit), { "header.prefer": "– | wait" })
  })
})

describe("OpenAI", () => {
  const model = "gpt-image-2"
  const client = () => new OpenAI({ apiKey: upstream.key, baseURL: `${upstream.url}/v1` })
  const file = (name: string) => toFile(pixel, name, { type: "image/png" })
  const start = () => at(openai, "openai-image", "/v1")

  it("gets the same generation as from the openai package and @ai-sdk/openai", async () => {
    const body = { prompt, n: 2, size: "1536*1024" }
    const ours = await submitBy(await start(), request("text-to-image-preview", model, body))
    await client().images.generate({ model, prompt, n: 2, size: "1536x1024" })
    assert.deepEqual(differences(ours, upstream.lastSubmit), {})
    const provider = createOpenAI({ apiKey: upstream.key, baseURL: `${upstream.url}/v1` })
    await generateImage({ model: provider.image(model), prompt, n: 2, size: "1536x1024" })
    assert.deepEqual(differences(ours, upstream.lastSubmit), {})
  })

  it("gets the same edit as from the openai package", async () => {
    const body = { prompt, n: 2, size: "1024*1024", images: ["artifact:1", "artifact:2"] }
    const media = [picture("#/images/0"), picture("#/images/1")]
    const ours = await submitBy(await start(), request("image-edit", model, body, { media }))
    const image = [await file("a.png"), await file("b.png")]
    await client().images.edit({ model, prompt, n: 2, size: "1024x1024", image })
    assert.deepEqual(differences(ours, upstream.lastSubmit), {})
  })

  it("gets the same submit and polls for a video from an image as from the openai package", async () => {
    const account = await at(openai, "openai-video", "/v1")
    const body = { prompt, resolution: "720P", duration: 5, image: "artifact:1" }
    const media = [picture("#/image")]
    const job = request("image-to-video-spark", "sora-2", body, { media })
    const ours = await seenOf(upstream, () => finishBy(account, job))
    const theirs = await seenOf(upstream, async () => {
      const picture = await file("first.png")
      const made = await client().videos.create({
        model: "sora-2",
        prompt,
        seconds: "8",
        size: "1280x720",
        input_reference: picture
      })
      for (let status: string = made.status; status !== "completed";) {
        ;({ status } = await client().videos.retrieve(made.id))
      }
    })
    assert.deepEqual(differencesOfAll(ours, theirs), [{}, {}, {}])
  })
})

describe("Gemini", () => {
  const model = "gemini-3-pro-image"
  const data = pixel.toString("base64")
  const body = { prompt, images: ["artifact:1"], aspect_ratio: "16:9", resolution: "2K" }
  const job = request("image-edit-pro", model, body, { media: [picture("#/images/0")] })

  it("gets the same generation as from @google/genai, except for the version in the path", async () => {
    const ours = await submitBy(await at(gemini, "gemini-image", ""), job)
    const client = new GoogleGenAI({
      apiKey: upstream.key,
      httpOptions: { baseUrl: upstream.url }
    })
    const inlineData = { mimeType: "image/png", data }
    await client.models.generateContent({
      model,
      contents: [{ role: "user", parts: [{ text: prompt }, { inlineData }] }],
      config: {
        responseModalities: ["TEXT", "IMAGE"],
        imageConfig: { aspectRatio: "16:9", imageSize: "2K" }
      }
    })
    const path = `models/${model}:generateContent`
    assert.deepEqual(differences(ours, upstream.lastSubmit), {
      path: `/v1beta/${path} | /v1/${path}`
    })
  })

  it("gets the same generation as from @ai-sdk/google, which requests no text with the image", async () => {
    const ours = await submitBy(await at(gemini, "gemini-image", ""), job)
    const provider = createGoogle({ apiKey: upstream.key, baseURL: `${upstream.url}/v1beta` })
    await generateImage({
      model: provider.image(model),
      prompt: { text: prompt, images: [new Uint8Array(pixel)] },
      aspectRatio: "16:9",
      providerOptions: { google: { imageConfig: { imageSize: "2K" } } }
    })
    assert.deepEqual(differences(ours, upstream.lastSubmit), {
      "body.generationConfig.responseModalities.0": '"TEXT" | "IMAGE"',
      "body.generationConfig.responseModalities.1": '"IMAGE" | –'
    })
  })
})

describe("DashScope", () => {
  const common = { prompt, negative_prompt: "rain", duration: 5, prompt_extend: true, seed }
  const alibaba = { negativePrompt: "rain", promptExtend: true, watermark: false, audio: true }
  const make = (model: string, more: object) =>
    generateVideo({
      model: videoModel(
        createAlibaba({ apiKey: upstream.key, videoBaseURL: upstream.url }).video(model)
      ),
      prompt,
      resolution: "1280x720",
      duration: 5,
      seed,
      providerOptions: { alibaba },
      poll: { intervalMs: 1 },
      download: videoDownload(upstream),
      ...more
    })
  /** The AI SDK generates one per call; DashScope documents none. */
  const withoutKey = (found: Readonly<Record<string, string>>) =>
    Object.fromEntries(Object.entries(found).filter(([name]) => name !== "header.idempotency-key"))

  it("gets the same submit and polls for a video from text as from @ai-sdk/alibaba", async () => {
    const account = await at(dashscope, "dashscope-async", "/api/v1")
    const body = { ...common, size: "1280*720", audio: true }
    const job = request("text-to-video-spark", "wan2.6-t2v", body)
    const ours = await seenOf(upstream, () => finishBy(account, job))
    const theirs = await seenOf(upstream, () => make("wan2.6-t2v", {}))
    assert.deepEqual(differencesOfAll(ours, theirs).map(withoutKey), [{}, {}, {}])
  })

  it("gets the same submit for a video from an image as from @ai-sdk/alibaba, plus the image's type", async () => {
    const account = await at(dashscope, "dashscope-async", "/api/v1")
    const body = { ...common, resolution: "720P", audio: true, image: "artifact:1" }
    const media = [picture("#/image")]
    const ours = await submitBy(
      account,
      request("image-to-video-spark", "wan2.6-i2v", body, { media })
    )
    await make("wan2.6-i2v", { prompt: { text: prompt, image: new Uint8Array(pixel) } })
    const data = pixel.toString("base64")
    assert.deepEqual(withoutKey(differences(ours, upstream.lastSubmit)), {
      // The vendor documents a data URI, but that client sends only the Base64
      "body.input.img_url": `"data:image/png;base64,${data}" | "${data}"`
    })
  })
})
