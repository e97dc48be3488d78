import { Struct } from "effect"
import { afterAll, afterEach, assert, beforeAll, beforeEach, describe, it } from "vitest"
import { luma } from "../../../src/catalog/jobs/Luma.ts"
import { describedProtocol } from "../../../src/testing/vendors/DescribedProtocol.ts"
import { describedAdapter } from "../../../src/vendors/described/DescribedJobs.ts"
import { picture, request } from "../../support/upstreams/accounts.ts"
import { pixel, Upstream } from "../../support/upstreams/Upstream.ts"
import { differences, finishBy, submitBy, urlsOf } from "../support/requests.ts"
import type { Account } from "../support/requests.ts"
import { startPythonClients } from "./pythonClients.ts"

// The shipped description of Luma against its official client: both send and read the same.

const { jobs } = luma
const adapter = describedAdapter("luma", Struct.omit(jobs!, ["models"]))
const data = pixel.toString("base64")

let upstream: Upstream
let account: Account
beforeEach(async () => {
  upstream = await Upstream.start(describedProtocol(luma))
  upstream.runningPolls = 1
  account = { adapter, upstream, base: "" }
})
afterEach(() => upstream.close())

let clients: ReturnType<typeof startPythonClients>

const call = (method: string, given: object, key = upstream.key) =>
  clients.call("luma", { url: `${upstream.url}/v1`, key }, method, given)

const jobOf = (
  model: string,
  body: object,
  result: "images" | "videos",
  pointers: ReadonlyArray<string> = []
) => {
  const { body: schema, count, media, submit } = jobs!.models.find((it) => it.model === model)!
  return request(`luma/${model}`, model, body, {
    described: { body: schema, count: count!, submit: submit!, media: media! },
    result,
    media: pointers.map((pointer) => picture(pointer))
  })
}

describe("Luma", () => {
  beforeAll(() => {
    clients = startPythonClients()
  })
  afterAll(() => clients.close())

  it("gets the same image requests as from luma-agents, from text, from images and as an edit", async () => {
    const plain = await submitBy(account, jobOf("uni-1", { prompt: "A harbour" }, "images"))
    await call("generations.create", { model: "uni-1", type: "image", prompt: "A harbour" })
    assert.deepEqual(differences(plain, upstream.lastSubmit), {})
    const options = { prompt: "p", aspect_ratio: "3:2", output_format: "jpeg" }
    const full = await submitBy(
      account,
      jobOf(
        "uni-1-max",
        { ...options, image: "artifact:1", images: ["artifact:2", "artifact:3"] },
        "images",
        ["#/image", "#/images/0", "#/images/1"]
      )
    )
    const inline = { data, media_type: "image/png" }
    await call("generations.create", {
      ...options,
      model: "uni-1-max",
      type: "image_edit",
      source: inline,
      image_ref: [inline, inline]
    })
    assert.deepEqual(differences(full, upstream.lastSubmit), {})
  })

  it("gets the same video requests, with and without frames", async () => {
    const video = { resolution: "1080p", duration: "5s", loop: false }
    const common = { prompt: "p", aspect_ratio: "21:9" }
    const ours = await submitBy(account, jobOf("ray-3.2", { ...common, ...video }, "videos"))
    await call("generations.create", { ...common, model: "ray-3.2", type: "video", video })
    assert.deepEqual(differences(ours, upstream.lastSubmit), {})
    const framed = await submitBy(
      account,
      jobOf(
        "ray-3.2",
        { ...common, ...video, start_frame: "artifact:1", end_frame: "artifact:2" },
        "videos",
        ["#/start_frame", "#/end_frame"]
      )
    )
    const inline = { data, media_type: "image/png" }
    await call("generations.create", {
      ...common,
      model: "ray-3.2",
      type: "video",
      video: { ...video, start_frame: inline, end_frame: inline }
    })
    assert.deepEqual(differences(framed, upstream.lastSubmit), {})
  })

  it("is polled as by the client, and returns the results and the failure that both read", async () => {
    const job = jobOf("uni-1", { prompt: "p" }, "images")
    const items = await finishBy(account, job)
    const ours = upstream.seen.at(-1)!
    const id = [...upstream.jobs.keys()][0]!
    const done = await call("generations.get", { generation_id: id })
    assert.deepEqual(differences(ours, upstream.seen.at(-1)!), {})
    assert.strictEqual(done.made.state, "completed")
    assert.deepEqual(
      urlsOf(items),
      done.made.output.map(({ url }: { url: string }) => url)
    )
    upstream.ending = "content"
    upstream.runningPolls = 0
    const made = await call("generations.create", { prompt: "p", model: "uni-1" })
    const failed = await call("generations.get", { generation_id: made.made.id })
    assert.strictEqual(failed.made.state, "failed")
    assert.strictEqual(failed.made.failure_code, "content_moderated")
  })

  it("returns the description's errors, which the client maps to its own", async () => {
    const order = { prompt: "p", model: "uni-1" }
    upstream.submitFaults = ["client"]
    const refused = await call("generations.create", order)
    assert.deepEqual(refused, { error: "BadRequestError", status: 400 })
    upstream.submitFaults = ["429"]
    const limited = await call("generations.create", order)
    assert.deepEqual(limited, { error: "RateLimitError", status: 429 })
    const stranger = await call("generations.create", order, "other")
    assert.deepEqual(stranger, { error: "AuthenticationError", status: 401 })
  })
})
