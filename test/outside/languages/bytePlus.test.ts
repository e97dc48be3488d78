import { Struct } from "effect"
import { afterAll, afterEach, assert, beforeAll, beforeEach, describe, it } from "vitest"
import { bytePlus } from "../../../src/catalog/jobs/BytePlus.ts"
import { describedProtocol } from "../../../src/testing/vendors/DescribedProtocol.ts"
import { describedAdapter } from "../../../src/vendors/described/DescribedJobs.ts"
import { picture, request } from "../../support/upstreams/accounts.ts"
import { Upstream } from "../../support/upstreams/Upstream.ts"
import { differences, finishBy, submitBy, urlsOf } from "../support/requests.ts"
import type { Account } from "../support/requests.ts"
import { startPythonClients } from "./pythonClients.ts"

// The shipped description of BytePlus against its official client: both send and read the same.

const { jobs } = bytePlus
const adapter = describedAdapter("byteplus", Struct.omit(jobs!, ["models"]))
const address = "https://example.com/harbour.png"

let upstream: Upstream
let account: Account
beforeEach(async () => {
  upstream = await Upstream.start(describedProtocol(bytePlus))
  upstream.runningPolls = 1
  account = { adapter, upstream, base: "" }
})
afterEach(() => upstream.close())

let clients: ReturnType<typeof startPythonClients>

const call = (method: string, given: object, key = upstream.key) =>
  clients.call("byteplus", { url: upstream.url, key }, method, given)

const modelOf = (name: string) => jobs!.models.find(({ model }) => model === name)!

const jobOf = (name: string, body: object, urls: Readonly<Record<string, string>> = {}) => {
  const { body: schema, count, media, result, submit, upstreamModel } = modelOf(name)
  return request(`byteplus/${name}`, upstreamModel!, body, {
    described: { body: schema, count: count!, submit: submit!, media: media! },
    result,
    media: Object.entries(urls).map(([pointer, url]) => picture(pointer, url))
  })
}

/** Each request of the client has a unique number, and `null` for what it was not given. */
const apartFromPrograms = (found: Readonly<Record<string, string>>) =>
  Object.fromEntries(
    Object.entries(found).filter(
      ([name, value]) => name !== "header.x-client-request-id" && value !== "– | null"
    )
  )

const tasks = "content_generation.tasks"
const video = { resolution: "480p", ratio: "16:9", duration: 4, watermark: false, seed: 7 }
const text = { type: "text", text: "A harbour" }
const frameOf = (url: string, role: string) => ({ type: "image_url", image_url: { url }, role })

describe("BytePlus", () => {
  beforeAll(() => {
    clients = startPythonClients()
  })
  afterAll(() => clients.close())

  it("gets the same Seedance requests as from byteplus-python-sdk-v2, with and without frames", async () => {
    const model = modelOf("seedance-2-0").upstreamModel!
    const body = { prompt: "A harbour", ...video, audio: false }
    const given = { model, ...video, generate_audio: false }
    const plain = await submitBy(account, jobOf("seedance-2-0", body))
    await call(`${tasks}.create`, { ...given, content: [text] })
    assert.deepEqual(apartFromPrograms(differences(plain, upstream.lastSubmit)), {})
    const frames = { "#/image": address, "#/last_frame": `${address}?2` }
    const order = jobOf(
      "seedance-2-0",
      { ...body, image: address, last_frame: `${address}?2` },
      frames
    )
    const callbackUrl = "https://gateway.example/callbacks?token=t"
    const framed = await submitBy(account, { ...order, callbackUrl })
    await call(`${tasks}.create`, {
      ...given,
      callback_url: callbackUrl,
      content: [text, frameOf(address, "first_frame"), frameOf(`${address}?2`, "last_frame")]
    })
    assert.deepEqual(apartFromPrograms(differences(framed, upstream.lastSubmit)), {})
  })

  it("gets the same Seedream requests, and returns an image that both read", async () => {
    const model = modelOf("seedream-4-5").upstreamModel!
    const options = { prompt: "p", size: "4K", watermark: false }
    const more = { sequential_image_generation: "disabled", response_format: "url" }
    const plain = await submitBy(account, jobOf("seedream-4-5", options))
    await call("images.generate", { model, ...options, ...more })
    assert.deepEqual(apartFromPrograms(differences(plain, upstream.lastSubmit)), {})
    const order = jobOf(
      "seedream-4-5",
      { ...options, images: [address, `${address}?2`] },
      { "#/images/0": address, "#/images/1": `${address}?2` }
    )
    const edited = await submitBy(account, order)
    const image = [address, `${address}?2`]
    await call("images.generate", { model, ...options, ...more, image })
    assert.deepEqual(apartFromPrograms(differences(edited, upstream.lastSubmit)), {})
    const items = await finishBy(account, order)
    assert.isTrue(items.every((item) => item._tag === "Url" && item.isShortLived === true))
    const made = await call("images.generate", { model, ...options, ...more })
    assert.lengthOf(made.made.data, items.length)
  })

  it("is polled as by the client, and returns the video and the failure that both read", async () => {
    const items = await finishBy(
      account,
      jobOf("seedance-2-0", { prompt: "p", ...video, audio: true })
    )
    const ours = upstream.seen.at(-1)!
    const id = [...upstream.jobs.keys()][0]!
    const done = await call(`${tasks}.get`, { task_id: id })
    assert.deepEqual(apartFromPrograms(differences(ours, upstream.seen.at(-1)!)), {})
    assert.strictEqual(done.made.status, "succeeded")
    assert.deepEqual(urlsOf(items), [done.made.content.video_url])
    upstream.ending = "content"
    upstream.runningPolls = 0
    const model = modelOf("seedance-2-0").upstreamModel!
    const made = await call(`${tasks}.create`, { model, content: [text] })
    const failed = await call(`${tasks}.get`, { task_id: made.made.id })
    assert.strictEqual(failed.made.status, "failed")
    assert.include(failed.made.error.code, "SensitiveContentDetected")
  })

  it("returns the description's errors, which the client maps to its own", async () => {
    const order = { model: modelOf("seedance-2-0").upstreamModel!, content: [text] }
    upstream.submitFaults = ["client"]
    const refused = await call(`${tasks}.create`, order)
    assert.deepEqual(refused, { error: "ArkBadRequestError", status: 400 })
    upstream.submitFaults = ["429"]
    const limited = await call(`${tasks}.create`, order)
    assert.deepEqual(limited, { error: "ArkRateLimitError", status: 429 })
    const stranger = await call(`${tasks}.create`, order, "other")
    assert.deepEqual(stranger, { error: "ArkAuthenticationError", status: 401 })
  })
})
