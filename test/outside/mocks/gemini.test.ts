import { createGoogle } from "@ai-sdk/google"
import { ApiError, GoogleGenAI, Modality } from "@google/genai"
import { generateImage } from "ai"
import { assert, describe, it } from "vitest"
import { gemini } from "../../../src/testing/vendors/GeminiProtocol.ts"
import { upstreamOfTests } from "../../support/mockVendors.ts"
import { pixel, Upstream } from "../../support/upstreams/Upstream.ts"

const upstream = await upstreamOfTests(Upstream.start(gemini))

const model = "gemini-3-pro-image"
const data = pixel.toString("base64")
const inlineData = { mimeType: "image/png", data }
const contents = [{ role: "user", parts: [{ text: "a harbour" }, { inlineData }] }]
const config = {
  responseModalities: [Modality.TEXT, Modality.IMAGE],
  imageConfig: { aspectRatio: "16:9", imageSize: "2K" }
}

describe("@google/genai and the Gemini mock", () => {
  const client = (apiKey = upstream.key) =>
    new GoogleGenAI({ apiKey, httpOptions: { baseUrl: upstream.url } })

  it("makes an image with the client's default version", async () => {
    const made = await client().models.generateContent({ model, contents, config })
    assert.strictEqual(upstream.lastSubmit.path, `/v1/models/${model}:generateContent`)
    const parts = made.candidates?.[0]?.content?.parts ?? []
    const final = parts.filter(({ inlineData, thought }) => inlineData && thought !== true)
    assert.deepEqual(
      final.map((it) => it.inlineData),
      [inlineData]
    )
    assert.strictEqual(made.candidates?.[0]?.finishReason, "STOP")
    assert.isAbove(made.usageMetadata?.totalTokenCount ?? 0, 0)
    assert.strictEqual(made.modelVersion, model)
    assert.isString(made.responseId)
  })

  it("makes one with v1beta, too, and with the vendor's defaults", async () => {
    const older = new GoogleGenAI({
      apiKey: upstream.key,
      httpOptions: { baseUrl: upstream.url, apiVersion: "v1beta" }
    })
    await older.models.generateContent({ model, contents: "a harbour" })
    assert.strictEqual(upstream.lastSubmit.path, `/v1beta/models/${model}:generateContent`)
    assert.strictEqual(upstream.paidSubmits, 1)
  })

  it("streams one", async () => {
    const pictures = []
    const chunks = await client().models.generateContentStream({ model, contents, config })
    for await (const { candidates } of chunks) {
      pictures.push(...(candidates?.[0]?.content?.parts ?? []).filter((it) => it.inlineData))
    }
    assert.strictEqual(pictures.findLast(({ thought }) => !thought)?.inlineData?.data, data)
  })

  it("has the vendor's message in its errors", async () => {
    const error = await client("AIzaNo")
      .models.generateContent({ model, contents, config })
      .catch((error: unknown) => error)
    assert.instanceOf(error, ApiError)
    assert.strictEqual(error.status, 400)
    assert.include(error.message, "API key not valid")
    upstream.ending = "content"
    const blocked = await client().models.generateContent({ model, contents, config })
    assert.strictEqual(blocked.promptFeedback?.blockReason, "PROHIBITED_CONTENT")
  })
})

describe("@ai-sdk/google and the Gemini mock", () => {
  const provider = () => createGoogle({ apiKey: upstream.key, baseURL: `${upstream.url}/v1beta` })

  it("makes an image from text", async () => {
    const { images } = await generateImage({
      model: provider().image(model),
      prompt: "a harbour",
      aspectRatio: "16:9"
    })
    assert.deepEqual(Buffer.from(images[0]?.uint8Array ?? []), pixel)
  })

  it("edits an image", async () => {
    const { images } = await generateImage({
      model: provider().image(model),
      prompt: { text: "without the boats", images: [new Uint8Array(pixel)] }
    })
    assert.strictEqual(images.length, 1)
    const { parts } = upstream.lastSubmit.json.contents[0]
    assert.deepEqual(parts[1], { inlineData })
  })
})
