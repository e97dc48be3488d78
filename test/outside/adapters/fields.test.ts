import { createFalClient } from "@fal-ai/client"
import Replicate from "replicate"
import { afterEach, assert, describe, it } from "vitest"
import { fal } from "../../../src/testing/vendors/FalProtocol.ts"
import { replicate } from "../../../src/testing/vendors/ReplicateProtocol.ts"
import { picture, request } from "../../support/upstreams/accounts.ts"
import { Upstream } from "../../support/upstreams/Upstream.ts"
import type { Protocol } from "../../support/upstreams/Upstream.ts"
import { fetchAt } from "../support/hosts.ts"
import { differences, finishBy, submitBy, urlsOf } from "../support/requests.ts"
import type { Account } from "../support/requests.ts"

// What the vendors' clients send and read for a job with an image, for a deployment, and for a prompt that
// contains a URL.

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
const address = "https://example.com/harbour.png"
const body = { prompt, image: address }
const media = [picture("#/image", address)]

describe("fal", () => {
  const client = () =>
    createFalClient({
      credentials: upstream.key,
      fetch: fetchAt(upstream, { "https://queue.fal.run": "" })
    })

  it("gets the URL of a public image unchanged, as from @fal-ai/client", async () => {
    const model = "fal-ai/kling-video/v2/master/image-to-video"
    const input = { fields: { image: "image_url" } }
    const job = request("image-to-video-spark", model, body, { media, input, result: "videos" })
    const ours = await submitBy(await at(fal, "fal-queue", ""), job)
    await client().queue.submit(model, { input: { prompt, image_url: address } })
    assert.deepEqual(differences(ours, upstream.lastSubmit), {
      "header.x-fal-queue-priority": "– | normal"
    })
  })

  it("returns the images that @fal-ai/client reads, and not a URL in the prompt", async () => {
    const words = "https://attacker.example/second.png"
    const job = request("text-to-image-preview", "fal-ai/flux/dev", { prompt: words, n: 1 })
    const items = await finishBy(await at(fal, "fal-queue", ""), job)
    const { data } = await client().subscribe("fal-ai/flux/dev", {
      input: { prompt: words, num_images: 1 },
      pollInterval: 1
    })
    assert.strictEqual(data.prompt, words)
    assert.lengthOf(urlsOf(items), data.images.length)
    assert.notInclude(urlsOf(items), words)
  })
})

describe("Replicate", () => {
  const model = "black-forest-labs/flux-kontext-pro"
  const input = { fields: { image: "input_image" } }
  const client = () => new Replicate({ auth: upstream.key, baseUrl: `${upstream.url}/v1` })

  it("gets the URL of a public image unchanged, as from the replicate package", async () => {
    const job = request("image-to-video-spark", model, body, { media, input })
    const ours = await submitBy(await at(replicate, "replicate", "/v1"), job)
    await client().predictions.create({ model, input: { prompt, input_image: address } })
    assert.deepEqual(differences(ours, upstream.lastSubmit), {})
  })

  it("gets the same request for a deployment as from the replicate package", async () => {
    const job = request("text-to-image-preview", "deployments/acme/pictures", { prompt })
    const account = await at(replicate, "replicate", "/v1")
    const ours = await submitBy(account, job)
    await client().deployments.predictions.create("acme", "pictures", { input: { prompt } })
    assert.deepEqual(differences(ours, upstream.lastSubmit), {})
    assert.lengthOf(await finishBy(account, job), 1)
  })
})
