import { DallEAPIWrapper } from "@langchain/openai"
import { assert, describe, it } from "vitest"
import { aiSdks } from "../support/aiSdk.ts"
import { worlds } from "../support/worlds.ts"
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

  it("of words, several at once", async () => {
    const { image, images } = await ai.generateImage({
      model,
      prompt: "A lighthouse",
      n: 2,
      size: "1024x1024"
    })
    assert.lengthOf(images, 2)
    isPng(image.uint8Array)
  })

  it("of a picture", async () => {
    const { image } = await ai.generateImage({ model, prompt: "A lighthouse", size: "1024x1024" })
    const edited = await ai.generateImage({
      model: openai(world, "/v1").image("image-edit"),
      prompt: { text: "At night", images: [image.uint8Array] }
    })
    isPng(edited.image.uint8Array)
  })

  it("and buys once when the wait is over, with its own retries", async () => {
    const before = await tasksOf(world)
    const request = ai.generateImage({
      model,
      prompt: "[[sim:hang]]",
      headers: { prefer: "wait=1" }
    })
    const error = await request.then(
      () => undefined,
      (error: unknown) => error
    )
    assert.isTrue(ai.APICallError.isInstance(error), String(error))
    assert.deepInclude(Object(error), { statusCode: 424, isRetryable: false })
    assert.lengthOf(await tasksOf(world), before.length + 1)
  })
})

describe("LangChain makes images", () => {
  const tool = (more: object) =>
    new DallEAPIWrapper({
      model: "text-to-image-preview",
      apiKey: world.key,
      baseUrl: `${world.url}/v1`,
      ...more
    })

  it("with its own defaults, by URL and as Base64", async () => {
    const link: unknown = await tool({}).invoke("A lighthouse")
    isPng(new Uint8Array(await (await fetch(String(link))).arrayBuffer()))
    const text: unknown = await tool({ responseFormat: "b64_json" }).invoke("A lighthouse")
    const found = /[A-Za-z0-9+/=]{100,}/u.exec(JSON.stringify(text))?.[0] ?? ""
    isPng(Buffer.from(found, "base64"))
  })
})
