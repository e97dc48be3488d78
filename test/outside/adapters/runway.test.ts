import RunwayML, { AuthenticationError, BadRequestError } from "@runwayml/sdk"
import { Struct } from "effect"
import { assert, describe, it } from "vitest"
import { runway } from "../../../src/catalog/jobs/Runway.ts"
import { describedProtocol } from "../../../src/testing/vendors/DescribedProtocol.ts"
import { describedAdapter } from "../../../src/vendors/described/DescribedJobs.ts"
import { upstreamOfTests } from "../../support/mockVendors.ts"
import { picture, request } from "../../support/upstreams/accounts.ts"
import { Upstream } from "../../support/upstreams/Upstream.ts"
import { cancelBy, differences, finishBy, submitBy, urlsOf } from "../support/requests.ts"
import type { Account } from "../support/requests.ts"

// The shipped description of Runway against its official client: both send and read the same.

const { jobs } = runway
const adapter = describedAdapter("runway", Struct.omit(jobs!, ["models"]))
const address = "https://example.com/harbour.png"

const upstream = await upstreamOfTests(Upstream.start(describedProtocol(runway)))
const account: Account = { adapter, upstream, base: "" }
const client = new RunwayML({ apiKey: upstream.key, baseURL: upstream.url, maxRetries: 0 })

const jobOf = (model: string, body: object, result: "images" | "videos") => {
  const { body: schema, count, media, submit } = jobs!.models.find((it) => it.model === model)!
  const described = { body: schema, count: count!, submit: submit!, ...(media && { media }) }
  const pictures = Object.entries(body).flatMap(([field, value]) => {
    if (field === "image") return [picture("#/image", String(value))]
    return field === "images"
      ? (value as ReadonlyArray<string>).map((url, n) => picture(`#/images/${n}`, url))
      : []
  })
  return request(`runway/${model}`, model, body, { described, result, media: pictures })
}

/** Headers that name the client's program and come with every request. */
const programs = /^header\.x-stainless-/u
const apartFromPrograms = (found: Readonly<Record<string, string>>) =>
  Object.fromEntries(Object.entries(found).filter(([name]) => !programs.test(name)))

describe("Runway", () => {
  it("gets the same text-to-image requests as from @runwayml/sdk, with and without images", async () => {
    const images = [address, `${address}?2`]
    const job = jobOf(
      "gen4_image",
      { prompt: "a harbour", ratio: "1280:720", images, seed: 7 },
      "images"
    )
    const ours = await submitBy(account, job)
    await client.textToImage.create({
      model: "gen4_image",
      promptText: "a harbour",
      ratio: "1280:720",
      referenceImages: images.map((uri) => ({ uri })),
      seed: 7
    })
    assert.deepEqual(apartFromPrograms(differences(ours, upstream.lastSubmit)), {})
    const plain = await submitBy(
      account,
      jobOf("gen4_image", { prompt: "p", ratio: "1920:1080" }, "images")
    )
    await client.textToImage.create({ model: "gen4_image", promptText: "p", ratio: "1920:1080" })
    assert.deepEqual(apartFromPrograms(differences(plain, upstream.lastSubmit)), {})
  })

  it("gets the same text-to-video and image-to-video requests as from the client", async () => {
    const text = jobOf("gen4.5", { prompt: "p", ratio: "1280:720", duration: 5 }, "videos")
    const ours = await submitBy(account, text)
    await client.textToVideo.create({
      model: "gen4.5",
      promptText: "p",
      ratio: "1280:720",
      duration: 5
    })
    assert.deepEqual(apartFromPrograms(differences(ours, upstream.lastSubmit)), {})
    const still = jobOf(
      "gen4_turbo",
      { prompt: "p", image: address, ratio: "1280:720", duration: 5 },
      "videos"
    )
    const second = await submitBy(account, still)
    await client.imageToVideo.create({
      model: "gen4_turbo",
      promptText: "p",
      promptImage: address,
      ratio: "1280:720",
      duration: 5
    })
    assert.deepEqual(apartFromPrograms(differences(second, upstream.lastSubmit)), {})
  })

  it("is polled and cancelled as by the client, and both read the same results", async () => {
    const job = jobOf("gen4_image", { prompt: "p", ratio: "1280:720" }, "images")
    const items = await finishBy(account, job)
    const ours = upstream.seen.at(-1)!
    const id = [...upstream.jobs.keys()][0]!
    const task = await client.tasks.retrieve(id)
    assert.deepEqual(apartFromPrograms(differences(ours, upstream.seen.at(-1)!)), {})
    assert.strictEqual(task.status, "SUCCEEDED")
    assert.deepEqual(urlsOf(items), task.status === "SUCCEEDED" ? task.output : [])
    assert.strictEqual(await cancelBy(account, job), "Canceled")
    const cancel = upstream.seen.at(-1)!
    await client.tasks.delete(cancel.path.split("/").at(-1)!)
    assert.deepEqual(apartFromPrograms(differences(cancel, upstream.seen.at(-1)!)), {})
  })

  it("runs jobs for which the client waits and whose failure it reads", async () => {
    upstream.runningPolls = 0
    const made = await client.textToImage
      .create({ model: "gen4_image", promptText: "p", ratio: "1280:720" })
      .waitForTaskOutput()
    assert.lengthOf(made.output, 1)
    upstream.ending = "content"
    const failed = await client.textToImage
      .create({ model: "gen4_image", promptText: "p", ratio: "1280:720" })
      .waitForTaskOutput()
      .then(
        () => undefined,
        (error: unknown) => error
      )
    assert.strictEqual((failed as Error).name, "TaskFailedError")
  }, 60_000)

  it("returns the description's errors, which the client maps to its own", async () => {
    upstream.submitFaults = ["client"]
    const refused = await client.textToImage
      .create({ model: "gen4_image", promptText: "p", ratio: "1280:720" })
      .then(
        () => undefined,
        (error: unknown) => error
      )
    assert.instanceOf(refused, BadRequestError)
    const stranger = new RunwayML({ apiKey: "other", baseURL: upstream.url, maxRetries: 0 })
    const unknown = await stranger.tasks.retrieve("00000000-0000-4000-8000-000000000000").then(
      () => undefined,
      (error: unknown) => error
    )
    assert.instanceOf(unknown, AuthenticationError)
  })
})
