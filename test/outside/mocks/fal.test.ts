import { createFal } from "@ai-sdk/fal"
import { ApiError, createFalClient } from "@fal-ai/client"
import { experimental_generateVideo as generateVideo, generateImage } from "ai"
import { assert, describe, it } from "vitest"
import { fal } from "../../../src/testing/vendors/FalProtocol.ts"
import { upstreamOfTests } from "../../support/mockVendors.ts"
import { pixel, Upstream } from "../../support/upstreams/Upstream.ts"
import { videoDownload } from "../support/downloads.ts"
import { fetchAt } from "../support/hosts.ts"
import { videoModel } from "../support/models.ts"

const upstream = await upstreamOfTests(Upstream.start(fal))

const clientWith = (credentials: string) =>
  createFalClient({
    credentials,
    fetch: fetchAt(upstream, { "https://queue.fal.run": "", "https://fal.run": "/sync" })
  })
const client = () => clientWith(upstream.key)

const model = "fal-ai/flux/dev"
const input = { prompt: "a harbour", num_images: 2, image_size: { width: 1024, height: 768 } }
const urlsIn = (data: unknown) =>
  (data as { images: Array<{ url: string; content_type: string }> }).images.map(({ url }) => url)

const typeOf = ({ body }: ApiError<unknown>) =>
  (body as { detail: Array<{ type: string }> }).detail[0]?.type

describe("@fal-ai/client and the fal mock", () => {
  it("submits, follows the queue and reads the result", async () => {
    const statuses: Array<string> = []
    const { data, requestId } = await client().subscribe(model, {
      input,
      logs: true,
      pollInterval: 1,
      onQueueUpdate: (update) => statuses.push(update.status)
    })
    assert.strictEqual(upstream.paidSubmits, 1)
    assert.deepEqual([...new Set(statuses)], ["IN_QUEUE", "COMPLETED"])
    assert.strictEqual(urlsIn(data).length, 2)
    assert.strictEqual(requestId, [...upstream.jobs.keys()][0])
    assert.strictEqual((data as { prompt: string }).prompt, input.prompt)
  })

  it("submits with a webhook, polls explicitly and reads the URLs of the job", async () => {
    const webhookUrl = "https://example.com/callback"
    const queued = await client().queue.submit(model, { input, webhookUrl })
    assert.strictEqual(upstream.lastSubmit.query.get("fal_webhook"), webhookUrl)
    const { request_id: requestId } = queued
    assert.isString(requestId)
    const app = "https://queue.fal.run/fal-ai/flux"
    assert.strictEqual(queued.status_url, `${app}/requests/${requestId}/status`)
    assert.strictEqual(queued.response_url, `${app}/requests/${requestId}`)
    const seen = []
    for (let polls = 0; polls < 2; polls += 1) {
      seen.push(await client().queue.status(model, { requestId, logs: true }))
    }
    assert.deepEqual(
      seen.map((it) => it.status),
      ["IN_QUEUE", "COMPLETED"]
    )
    const [first, last] = seen
    assert.strictEqual(first?.status === "IN_QUEUE" && first.queue_position, 0)
    assert.isArray(last?.status === "COMPLETED" && last.logs)
    const result = await client().queue.result(model, { requestId })
    assert.strictEqual(result.requestId, requestId)
  })

  it("cancels a queued job", async () => {
    const { request_id: requestId } = await client().queue.submit(model, { input })
    await client().queue.cancel(model, { requestId })
    assert.strictEqual(upstream.cancels, 1)
  })

  it("follows a job of another app at that app's path", async () => {
    upstream.runningPolls = 0
    const { response_url: url } = await client().queue.submit("bria/text-to-image/hd", { input })
    assert.match(url, /^https:\/\/queue\.fal\.run\/bria\/text-to-image\/requests\/[^/]+$/u)
  })

  it("gets the result of a call without the queue", async () => {
    const { data } = await client().run(model, { input })
    assert.strictEqual(urlsIn(data).length, 2)
  })

  it("has the vendor's message in its errors", async () => {
    const fails = async (work: Promise<unknown>) => {
      const error = await work.then(
        () => undefined,
        (error: unknown) => error
      )
      assert.instanceOf(error, ApiError)
      return error
    }
    assert.strictEqual((await fails(clientWith("no").queue.submit(model, { input }))).status, 401)
    const bad = await fails(client().queue.submit(model, { input: { prompt: JSON.parse("null") } }))
    assert.strictEqual(bad.status, 422)
    assert.strictEqual(typeOf(bad), "missing")
    upstream.ending = "content"
    upstream.runningPolls = 0
    const { request_id: requestId } = await client().queue.submit(model, { input })
    const refused = await fails(client().queue.result(model, { requestId }))
    assert.strictEqual(typeOf(refused), "content_policy_violation")
    assert.strictEqual(refused.requestId, requestId)
  })
})

describe("@ai-sdk/fal and the fal mock", () => {
  it("makes images without the queue, and downloads them", async () => {
    const provider = createFal({ apiKey: upstream.key, baseURL: `${upstream.url}/sync` })
    const { images } = await generateImage({
      model: provider.image(model),
      prompt: "a harbour",
      size: "1024x768"
    })
    assert.deepEqual(
      images.map(({ uint8Array }) => Buffer.from(uint8Array)),
      [pixel]
    )
  })

  it("makes a video through the queue, whose result stays in progress for a while", async () => {
    upstream.runningPolls = 2
    const provider = createFal({
      apiKey: upstream.key,
      fetch: fetchAt(upstream, { "https://queue.fal.run": "" })
    })
    const { video } = await generateVideo({
      model: videoModel(provider.video("fal-ai/veo3/fast")),
      prompt: "a harbour",
      duration: 8,
      poll: { intervalMs: 1 },
      download: videoDownload(upstream, "https://queue.fal.run")
    })
    assert.deepEqual(Buffer.from(video.uint8Array), pixel)
    assert.strictEqual(video.mediaType, "video/mp4")
    const asked = upstream.seen.filter(({ method }) => method === "GET")
    assert.strictEqual(asked.length, 3)
  })
})
