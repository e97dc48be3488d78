import { createOpenAI } from "@ai-sdk/openai"
import { generateImage } from "ai"
import OpenAI, { AuthenticationError, BadRequestError, toFile } from "openai"
import { assert, describe, it } from "vitest"
import { openai } from "../../../src/testing/vendors/OpenAiProtocol.ts"
import { upstreamOfTests } from "../../support/mockVendors.ts"
import { pixel, Upstream } from "../../support/upstreams/Upstream.ts"

const upstream = await upstreamOfTests(Upstream.start(openai))

const client = () =>
  new OpenAI({ apiKey: upstream.key, baseURL: `${upstream.url}/v1`, maxRetries: 0 })

const model = "gpt-image-2"
const prompt = "a harbour with two boats"
const base64 = pixel.toString("base64")
const file = (name: string) => toFile(pixel, name, { type: "image/png" })

describe("the openai package and the OpenAI mock: images", () => {
  it("makes one with the vendor's defaults", async () => {
    const made = await client().images.generate({ model, prompt })
    assert.deepEqual(
      made.data?.map((it) => it.b64_json),
      [base64]
    )
    assert.isAbove(made.created, 1_000_000_000)
    assert.include(made, { output_format: "png", background: "opaque" })
    assert.match(made.size ?? "", /^\d+x\d+$/u)
    assert.isAbove(made.usage?.total_tokens ?? 0, 0)
    assert.isNumber(made.usage?.input_tokens_details.text_tokens)
  })

  it("makes several of any size that is divisible by 16, and returns the size", async () => {
    const made = await client().images.generate({
      model,
      prompt,
      n: 3,
      size: "1664x928",
      quality: "high",
      output_format: "webp"
    })
    assert.strictEqual(made.data?.length, 3)
    assert.include(made, { size: "1664x928", quality: "high", output_format: "webp" })
  })

  it("edits one image, and several", async () => {
    const one = await client().images.edit({ model, prompt, image: await file("a.png") })
    assert.strictEqual(one.data?.length, 1)
    const images = [await file("a.png"), await file("b.png")]
    const two = await client().images.edit({
      model,
      prompt,
      image: images,
      n: 2,
      size: "1024x1024"
    })
    assert.strictEqual(two.data?.length, 2)
    assert.strictEqual(upstream.lastSubmit.form.get("image[]")?.length, 2)
  })

  it("is refused sizes, numbers and fields that the vendor does not support", async () => {
    const asked = [
      { size: "1000x1000" },
      { size: "3840x1024" },
      { n: 11 },
      { seed: 1 },
      { negative_prompt: "rain" }
    ]
    for (const more of asked) {
      const call = client().images.generate({ model, prompt, ...more })
      const error = await call.then(
        () => undefined,
        (error: unknown) => error
      )
      assert.instanceOf(error, BadRequestError, JSON.stringify(more))
      assert.strictEqual(error.type, "invalid_request_error")
    }
    assert.strictEqual(upstream.paidSubmits, 0)
  })

  it("is refused with a wrong key", async () => {
    const stranger = new OpenAI({ apiKey: "sk-no", baseURL: `${upstream.url}/v1`, maxRetries: 0 })
    const error = await stranger.images.generate({ model, prompt }).then(
      () => undefined,
      (error: unknown) => error
    )
    assert.instanceOf(error, AuthenticationError)
  })
})

describe("the openai package and the OpenAI mock: videos", () => {
  it("makes one with the vendor's defaults, and downloads it", async () => {
    const made = await client().videos.create({ prompt })
    assert.deepInclude(made, {
      object: "video",
      status: "queued",
      model: "sora-2",
      prompt,
      seconds: "4",
      size: "720x1280",
      progress: 0,
      completed_at: null,
      expires_at: null,
      remixed_from_video_id: null,
      error: null
    })
    assert.strictEqual((await client().videos.retrieve(made.id)).status, "queued")
    const done = await client().videos.retrieve(made.id)
    assert.strictEqual(done.status, "completed")
    assert.isNumber(done.completed_at)
    assert.isNumber(done.expires_at)
    const content = await client().videos.downloadContent(made.id)
    assert.deepEqual(Buffer.from(await content.arrayBuffer()), pixel)
  })

  it("makes one from an image of the video's size", async () => {
    const made = await client().videos.create({
      model: "sora-2-pro",
      prompt,
      seconds: "8",
      size: "1280x720",
      input_reference: await file("first.png")
    })
    assert.include(made, { model: "sora-2-pro", seconds: "8", size: "1280x720", prompt })
  })

  it("lists videos submitted as forms, page by page", async () => {
    const ids = []
    for (let made = 0; made < 3; made += 1) {
      ids.push((await client().videos.create({ prompt: `${prompt} ${made}` })).id)
    }
    const listed = []
    for await (const video of client().videos.list({ limit: 2 })) listed.push(video)
    assert.deepEqual(
      listed.map(({ id }) => id),
      ids.toReversed()
    )
    assert.strictEqual(listed[0]?.prompt, `${prompt} 2`)
    assert.strictEqual(listed[0]?.model, "sora-2")
    const oldest = await client().videos.list({ limit: 1, order: "asc" })
    assert.strictEqual(oldest.data[0]?.id, ids[0])
  })

  it("deletes a finished one", async () => {
    upstream.runningPolls = 0
    const { id } = await client().videos.create({ prompt })
    assert.strictEqual((await client().videos.retrieve(id)).status, "completed")
    assert.deepInclude(await client().videos.delete(id), { id, deleted: true })
    const gone = await client()
      .videos.retrieve(id)
      .catch((error: Error) => error.message)
    assert.include(gone, "not found")
  })

  it("cannot download an unfinished one", async () => {
    const { id } = await client().videos.create({ prompt })
    const message = await client()
      .videos.downloadContent(id)
      .catch((error: Error) => error.message)
    assert.include(message, "not ready")
  })
})

describe("@ai-sdk/openai and the OpenAI mock", () => {
  it("makes images", async () => {
    const provider = createOpenAI({ apiKey: upstream.key, baseURL: `${upstream.url}/v1` })
    const made = await generateImage({ model: provider.image(model), prompt, n: 2 })
    assert.strictEqual(made.images.length, 2)
  })
})
