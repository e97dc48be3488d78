import { Ajv2020 } from "ajv/dist/2020.js"
import { Struct } from "effect"
import { assert, describe, it } from "vitest"
import { blackForestLabs } from "../../../src/catalog/jobs/BlackForestLabs.ts"
import { polledOf } from "../../../src/catalog/jobs/JobProtocol.ts"
import { describedProtocol } from "../../../src/testing/vendors/DescribedProtocol.ts"
import { describedAdapter } from "../../../src/vendors/described/DescribedJobs.ts"
import { playHandle } from "../../../src/vendors/described/JobPlayer.ts"
import { upstreamOfTests } from "../../support/mockVendors.ts"
import { picture, request } from "../../support/upstreams/accounts.ts"
import { Upstream } from "../../support/upstreams/Upstream.ts"
import { finishBy, submitBy, urlsOf } from "../support/requests.ts"
import type { Account } from "../support/requests.ts"

// The shipped description of Black Forest Labs against the shapes of its published OpenAPI document
// (https://api.bfl.ai/openapi.json, 3.1.0, as its documentation shows it; read 2026-11-26).

const text = { type: "string" }
const maybe = (schema: object) => ({ anyOf: [schema, { type: "null" }] })
const whole = (minimum: number, maximum: number) => ({ type: "integer", minimum, maximum })
const format = { type: "string", enum: ["jpeg", "png"] }
const image = maybe(text)

const inputs = {
  FluxKontextProInputs: {
    prompt: text,
    input_image: image,
    input_image_2: image,
    input_image_3: image,
    input_image_4: image,
    seed: maybe({ type: "integer" }),
    aspect_ratio: maybe(text),
    output_format: maybe(format),
    webhook_url: image,
    webhook_secret: image,
    prompt_upsampling: { type: "boolean" },
    safety_tolerance: whole(0, 6)
  },
  Flux2FlexInputs: {
    prompt: text,
    prompt_upsampling: maybe({ type: "boolean" }),
    seed: maybe({ type: "integer" }),
    width: maybe({ type: "integer", minimum: 64 }),
    height: maybe({ type: "integer", minimum: 64 }),
    guidance: maybe({ type: "number", minimum: 1.5, maximum: 10 }),
    steps: maybe(whole(1, 50)),
    safety_tolerance: whole(0, 5),
    output_format: maybe(format)
  }
} as const

const schemaOf = (name: keyof typeof inputs) => ({
  type: "object",
  properties: inputs[name],
  required: ["prompt"],
  additionalProperties: false
})

/** `AsyncResponse`, and the states of `StatusResponse`. */
const submitted = {
  type: "object",
  properties: {
    id: text,
    polling_url: text,
    cost: maybe({ type: "number" }),
    input_mp: maybe({ type: "number" }),
    output_mp: maybe({ type: "number" })
  },
  required: ["id", "polling_url"]
}
const states = [
  "Task not found",
  "Pending",
  "Request Moderated",
  "Content Moderated",
  "Ready",
  "Error"
]

const { jobs } = blackForestLabs
const protocol = Struct.omit(jobs!, ["models"])
const adapter = describedAdapter("bfl", protocol)

const upstream = await upstreamOfTests(Upstream.start(describedProtocol(blackForestLabs)))
const account: Account = { adapter, upstream, base: "" }

const jobOf = (name: string, body: object, urls: ReadonlyArray<string> = []) => {
  const { body: schema, count, media, submit } = jobs!.models.find((it) => it.model === name)!
  return request(`bfl/${name}`, name, body, {
    described: { body: schema, count: count!, submit: submit!, ...(media && { media }) },
    result: "images",
    media: urls.map((url, n) => picture(`#/images/${n}`, url))
  })
}

const assertValid = (schema: object, value: unknown) => {
  const ajv = new Ajv2020()
  assert.isTrue(ajv.validate(schema, value), ajv.errorsText())
}

describe("Black Forest Labs", () => {
  it("gets requests that match the published document, with all optional fields and with none", async () => {
    const urls = [1, 2, 3, 4].map((n) => `https://example.com/${n}.png`)
    const kontext = {
      prompt: "p",
      images: urls,
      aspect_ratio: "16:9",
      output_format: "jpeg",
      safety_tolerance: 6,
      seed: 7
    }
    for (const name of ["flux-kontext-pro", "flux-kontext-max"]) {
      const full = await submitBy(account, jobOf(name, kontext, urls))
      assert.strictEqual(`${full.method} ${full.path}`, `POST /v1/${name}`)
      assert.strictEqual(full.headers["x-key"], upstream.key)
      assertValid(schemaOf("FluxKontextProInputs"), full.json)
      assert.strictEqual(full.json.input_image_4, urls[3])
      assertValid(
        schemaOf("FluxKontextProInputs"),
        (await submitBy(account, jobOf(name, { prompt: "p" }))).json
      )
    }
    const flex = {
      prompt: "p",
      width: 2048,
      height: 64,
      steps: 1,
      guidance: 1.5,
      output_format: "png",
      safety_tolerance: 5,
      seed: 0
    }
    const { json } = await submitBy(account, jobOf("flux-2-flex", flex))
    assertValid(schemaOf("Flux2FlexInputs"), json)
    assert.deepEqual(json, flex)
  })

  it("has bodies whose limits and defaults are valid in the document", () => {
    for (const { body, model } of jobs!.models) {
      const shapes = inputs[model === "flux-2-flex" ? "Flux2FlexInputs" : "FluxKontextProInputs"]
      const properties = body["properties"] as Record<string, Record<string, number | string>>
      for (const [name, { default: fallback, maximum, minimum }] of Object.entries(properties)) {
        if (name === "images") continue
        const shape = { ...shapes }[name as keyof typeof shapes]
        for (const value of [minimum, maximum, fallback]) {
          if (value !== undefined) assertValid(shape, value)
        }
      }
    }
  })

  it("returns a job, states and a result that the description reads", async () => {
    const { json } = playHandle(polledOf(protocol)!, "j", "https://api.eu1.bfl.ai")
    assertValid(submitted, { ...(json as object), cost: 4 })
    const { done, failed, running } = protocol.state!
    for (const state of [...done, ...failed, ...running]) assert.include(states, state)
    const items = await finishBy(account, jobOf("flux-2-flex", { prompt: "p" }))
    assert.lengthOf(urlsOf(items), 1)
    assert.isTrue(items.every((item) => item._tag === "Url" && item.isShortLived === true))
  })
})
