import { DallEAPIWrapper } from "@langchain/openai"
import OpenAI from "openai"
import { assert, describe, it } from "vitest"
import { aiSdks } from "../support/aiSdk.ts"
import { newKey, worlds } from "../support/worlds.ts"
import type { World } from "../support/worlds.ts"

const tasksOf = async ({ key, url }: World): Promise<ReadonlyArray<{ model: string }>> => {
  const headers = { authorization: `Bearer ${key}` }
  const answer = await fetch(`${url}/manage/v1/tasks?limit=100`, { headers })
  const { data } = JSON.parse(await answer.text())
  return data
}

const isPng = (bytes: Uint8Array) =>
  assert.strictEqual(new TextDecoder().decode(bytes.slice(1, 4)), "PNG")

const world = worlds().find(({ name }) => name === "the sandbox")!

describe.each(aiSdks)("the AI SDK $version makes images", ({ ai, openai }) => {
  const model = openai(world, "/v1").image("text-to-image-preview")

  it("from text, several at once", async () => {
    const { image, images } = await ai.generateImage({
      model,
      prompt: "A lighthouse",
      n: 2,
      size: "1024x1024"
    })
    assert.lengthOf(images, 2)
    isPng(image.uint8Array)
  })

  it.each(["gpt-image-1", "gpt-image-2", "dall-e-3"])("under the name %s", async (name) => {
    const { images, responses } = await ai.generateImage({
      model: openai(world, "/v1").image(name),
      prompt: "A lighthouse",
      n: 2,
      size: "1024x1536",
      providerOptions: { openai: { quality: "high", style: "natural" } }
    })
    assert.lengthOf(images, 2)
    for (const { uint8Array } of images) isPng(uint8Array)
    const headers = responses.map((it) => it.headers ?? {})
    for (const it of headers) assert.strictEqual(it["x-service-size"], "1024x1536")
    for (const it of headers) assert.strictEqual(it["x-service-ignored"], "quality, style")
  })

  it("from an image, under OpenAI's name", async () => {
    const { image } = await ai.generateImage({ model, prompt: "A lighthouse", size: "1024x1024" })
    const edited = await ai.generateImage({
      model: openai(world, "/v1").image("gpt-image-1"),
      prompt: { text: "At night", images: [image.uint8Array] }
    })
    isPng(edited.image.uint8Array)
  })

  it("from an image", async () => {
    const { image } = await ai.generateImage({ model, prompt: "A lighthouse", size: "1024x1024" })
    const edited = await ai.generateImage({
      model: openai(world, "/v1").image("image-edit"),
      prompt: { text: "At night", images: [image.uint8Array] }
    })
    isPng(edited.image.uint8Array)
  })

  it("and buys one task if the wait times out, despite its own retries", async () => {
    const own = { ...world, key: await newKey(world) }
    const request = ai.generateImage({
      model: openai(own, "/v1").image("text-to-image-preview"),
      prompt: "[[sim:hang]]",
      headers: { prefer: "wait=1" }
    })
    const error = await request.then(
      () => undefined,
      (error: unknown) => error
    )
    assert.isTrue(ai.APICallError.isInstance(error), String(error))
    assert.deepInclude(Object(error), { statusCode: 424, isRetryable: false })
    assert.lengthOf(await tasksOf(own), 1)
  })
})

describe("OpenAI's package makes images", () => {
  it("under OpenAI's names, in the number and size of OpenAI's models", async () => {
    const { images } = new OpenAI({ apiKey: world.key, baseURL: `${world.url}/v1` })
    const three = await images.generate({
      model: "gpt-image-1",
      prompt: "A lighthouse",
      n: 3,
      size: "1536x1024",
      quality: "low"
    })
    assert.lengthOf(three.data ?? [], 3)
    const [one] = (
      await images.generate({
        model: "dall-e-3",
        prompt: "A lighthouse",
        size: "1792x1024",
        response_format: "b64_json"
      })
    ).data ?? [{}]
    const bytes = Buffer.from(one?.b64_json ?? "", "base64")
    isPng(bytes)
    assert.deepStrictEqual([bytes.readUInt32BE(16), bytes.readUInt32BE(20)], [1792, 1024])
  })
})

describe("LangChain makes images", () => {
  const tool = (more: object) =>
    new DallEAPIWrapper({ apiKey: world.key, baseUrl: `${world.url}/v1`, ...more })

  it("with its own defaults, by URL and as Base64", async () => {
    const link: unknown = await tool({}).invoke("A lighthouse")
    isPng(new Uint8Array(await (await fetch(String(link))).arrayBuffer()))
    const text: unknown = await tool({ responseFormat: "b64_json" }).invoke("A lighthouse")
    const found = /[A-Za-z0-9+/=]{100,}/u.exec(JSON.stringify(text))?.[0] ?? ""
    isPng(Buffer.from(found, "base64"))
  })

  it("with every option that it has", async () => {
    const urls: unknown = await tool({
      n: 2,
      size: "1024x1792",
      quality: "hd",
      style: "natural",
      user: "someone"
    }).invoke("A lighthouse")
    const links = JSON.stringify(urls).match(/http[^"\\]+/gu) ?? []
    assert.lengthOf(links, 2)
    for (const link of links) isPng(new Uint8Array(await (await fetch(link)).arrayBuffer()))
  })
})
