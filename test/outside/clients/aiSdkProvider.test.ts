import {
  embedMany,
  experimental_generateVideo as generateVideo,
  generateImage,
  generateObject,
  generateSpeech,
  generateText,
  streamText,
  tool,
  transcribe
} from "ai"
import { assert, describe, expect, it } from "vitest"
import { z } from "zod"
import { createGenerationGateway } from "../../../src/ai-sdk/index.ts"
import type { ModelOptions } from "../../../src/ai-sdk/index.ts"
import { newKey, worlds } from "../support/worlds.ts"

const gatewayOf = ({ key, url }: { readonly key: string; readonly url: string }) =>
  createGenerationGateway({ baseURL: url, apiKey: key })

describe.each(worlds())("generation-gateway/ai-sdk at $name", (world) => {
  const gateway = gatewayOf(world)

  it("generates text, streams it, and calls tools", async () => {
    const model = gateway("gpt-4o")
    const whole = await generateText({ model, prompt: "Where to?" })
    assert.strictEqual(whole.text, world.text)
    assert.isAbove(whole.usage.totalTokens ?? 0, 0)
    const stream = streamText({ model: gateway("deepseek/deepseek-chat"), prompt: "Where to?" })
    assert.strictEqual(await stream.text, world.text)
    const weather = tool({
      description: "The weather of a city",
      inputSchema: z.object({ city: z.string() }),
      execute: () => Promise.resolve("sunny")
    })
    const used = await generateText({
      model,
      tools: { weather },
      prompt: "Where to? [[sim:tool=weather]]"
    })
    assert.strictEqual(used.toolCalls[0]?.toolName, "weather")
  })

  it("embeds", async () => {
    const model = gateway.embeddingModel("text-embedding-3-small")
    const { embeddings } = await embedMany({ model, values: ["a", "b"] })
    assert.strictEqual(embeddings.length, 2)
  })
})

const shared = worlds().find(({ name }) => name === "the sandbox")!
// A wallet without the calls of other files
const sandbox = { ...shared, key: await newKey(shared) }

/** The balance once nothing is held, because calls are settled after their responses. */
const settled = async () => {
  for (;;) {
    const response = await fetch(`${sandbox.url}/manage/v1/wallet`, {
      headers: { authorization: `Bearer ${sandbox.key}` }
    })
    const wallet = (await response.json()) as Record<"held_balance" | "settled_balance", string>
    if (Number(wallet.held_balance) === 0) return Number(wallet.settled_balance)
  }
}

describe("generation-gateway/ai-sdk, media", () => {
  const gateway = gatewayOf(sandbox)

  it("makes an object that fits a schema", async () => {
    const { object } = await generateObject({
      model: gateway("gpt-4o"),
      schema: z.object({ city: z.string() }),
      prompt: "Where to?"
    })
    assert.isString(object.city)
  })

  it("makes several images as tasks, and edits one", async () => {
    const before = await settled()
    const options: ModelOptions<"text-to-image-max"> = { negative_prompt: "fog" }
    const { images, providerMetadata } = await generateImage({
      model: gateway.imageModel("text-to-image-max"),
      prompt: "A lighthouse",
      n: 2,
      size: "1024x1024",
      providerOptions: { generationGateway: { ...options } }
    })
    assert.strictEqual(images.length, 2)
    for (const { mediaType, uint8Array } of images) {
      assert.strictEqual(mediaType, "image/png")
      assert.strictEqual(Buffer.from(uint8Array).toString("latin1", 1, 4), "PNG")
    }
    assert.strictEqual(before - (await settled()), 15)
    const metadata = JSON.stringify(providerMetadata["generationGateway"])
    assert.lengthOf(metadata.match(/"cost":"7.50"/gu) ?? [], 2)
    const edited = await generateImage({
      model: gateway.imageModel("image-edit-max"),
      prompt: { text: "At night", images: [images[0]!.uint8Array] }
    })
    assert.strictEqual(edited.images.length, 1)
  })

  it("shows what is wrong with a request, and does not repeat it", async () => {
    const refused = generateImage({
      model: gateway.imageModel("text-to-image-max"),
      prompt: "A lighthouse",
      providerOptions: { generationGateway: { promt: "x" } }
    })
    const error = await refused.catch((error: unknown) => error)
    assert.match(String(error), /promt/u)
    const before = await settled()
    const failing = generateImage({
      model: gateway.imageModel("text-to-image-max"),
      prompt: "[[sim:fail]] A lighthouse"
    })
    assert.match(String(await failing.catch((error: unknown) => error)), /code 3005/u)
    assert.strictEqual(await settled(), before)
  })

  it("makes a video with the SDK's own polls, and buys it once if the start is repeated", async () => {
    const before = await settled()
    let starts = 0
    const flaky = createGenerationGateway({
      baseURL: sandbox.url,
      apiKey: sandbox.key,
      fetch: async (input, init) => {
        const response = await fetch(input, init)
        // The first response is lost
        if (String(input).endsWith("/v1/videos") && (starts += 1) === 1) throw new Error("lost")
        return response
      }
    })
    const { providerMetadata, videos } = await generateVideo({
      model: flaky.videoModel("text-to-video-spark"),
      prompt: "A lighthouse",
      duration: 5,
      poll: { intervalMs: 200 }
    })
    assert.strictEqual(starts, 2)
    assert.strictEqual(videos.length, 1)
    assert.strictEqual(videos[0]!.mediaType, "video/mp4")
    assert.strictEqual(Buffer.from(videos[0]!.uint8Array).toString("latin1", 4, 8), "ftyp")
    const { cost } = providerMetadata["generationGateway"] as unknown as { cost: string }
    assert.strictEqual((before - (await settled())).toFixed(2), cost)
  })

  it("makes speech, and transcribes it", async () => {
    const before = await settled()
    const { audio } = await generateSpeech({
      model: gateway.speechModel("tts-1"),
      text: "Where to?",
      outputFormat: "wav"
    })
    assert.strictEqual(Buffer.from(audio.uint8Array).toString("latin1", 0, 4), "RIFF")
    // A call is settled after its response
    await expect.poll(settled).toBeLessThan(before)
    const spoken = await settled()
    const heard = await transcribe({
      model: gateway.transcriptionModel("whisper-1"),
      audio: audio.uint8Array
    })
    assert.isNotEmpty(heard.text)
    assert.isAbove(heard.durationInSeconds ?? 0, 0)
    await expect.poll(settled).toBeLessThan(spoken)
    const refused = generateSpeech({
      model: gateway.speechModel("tts-1"),
      text: "Where to?",
      providerOptions: { generationGateway: { maxCost: "0.00" } }
    })
    assert.match(String(await refused.catch((error: unknown) => error)), /1103/u)
  })
})
