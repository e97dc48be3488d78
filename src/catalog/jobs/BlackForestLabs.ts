import type { Vendor } from "../Vendors.ts"
import { object, oneOf, promptOf, seed } from "./Shapes.ts"

const priceSource = "black-forest-labs/skills, bfl-api; read 2026-11-26"

const prompt = promptOf(10_000)
const format = oneOf(["jpeg", "png"], "png")
const tolerance = (maximum: number) => ({
  type: "integer",
  minimum: 0,
  maximum,
  default: 2,
  description: "0 is the strictest"
})

/**
 * The vendor's credit is a US cent, like a credit of the gateway. The response to a submit shows the cost of the job.
 */
const capture = "timesUp(usage.cost, 1000000)"

const side = { type: "integer", minimum: 64, maximum: 2048, multipleOf: 16, default: 1024 }

/** Instruction-based editing, at one price per image. */
const kontext = (model: string, hold: string) =>
  ({
    model,
    result: "images",
    body: object(
      {
        prompt,
        images: {
          type: "array",
          items: { type: "string" },
          maxItems: 4,
          description: "Pictures to edit or to follow"
        },
        aspect_ratio: {
          type: "string",
          minLength: 3,
          maxLength: 5,
          description: "Between 21:9 and 9:21"
        },
        output_format: format,
        safety_tolerance: tolerance(6),
        seed
      },
      ["prompt"]
    ),
    media: { images: { kind: "image", bytesMax: 10_000_000 } },
    submit: {
      json: {
        prompt: { $: "$.body.prompt" },
        input_image: { $: "$.body.images[0]" },
        input_image_2: { $: "$.body.images[1]" },
        input_image_3: { $: "$.body.images[2]" },
        input_image_4: { $: "$.body.images[3]" },
        aspect_ratio: { $: "$.body.aspect_ratio" },
        output_format: { $: "$.body.output_format" },
        safety_tolerance: { $: "$.body.safety_tolerance" },
        seed: { $: "$.body.seed" }
      }
    },
    count: "1",
    price: { per: "expression", hold, capture },
    source: priceSource
  }) as const

/**
 * Black Forest Labs, based on its published OpenAPI document and its error page;
 * test/outside/adapters/blackForestLabs.test.ts checks the requests. Its polling URLs are at other hosts and need no
 * key. `Task not found` does not end a job, because the job may be in another region.
 * docs/reference/vendors.md#job-vendors
 */
export const blackForestLabs: Vendor = {
  name: "bfl",
  base: "https://api.bfl.ai",
  jobs: {
    auth: { scheme: "header", name: "x-key" },
    submit: {
      path: "/v1/{model}",
      handle: { id: "$.id", pollingUrl: "$.polling_url", cost: "$.cost" }
    },
    poll: { path: "{pollingUrl}" },
    state: {
      at: "$.status",
      running: ["Pending"],
      done: ["Ready"],
      failed: ["Error", "Request Moderated", "Content Moderated"]
    },
    // Result URLs are valid for ten minutes
    results: { urls: ["$.result.sample"], shortLived: true },
    error: {
      code: ["$.detail[0].type"],
      message: ["$.detail[0].msg", "$.detail", "$.message", "$.error"]
    },
    jobError: { code: ["$.status"], message: ["$.status"] },
    failures: [
      { codes: ["Request Moderated", "Content Moderated"], class: "CONTENT" },
      { status: 400, class: "FATAL_CLIENT" },
      { status: 402, class: "OPERATOR" },
      { status: 403, class: "OPERATOR" },
      { status: 422, class: "FATAL_CLIENT" },
      { status: 429, class: "RATE_LIMITED" },
      { status: 503, class: "RETRYABLE" }
    ],
    concurrent: 24,
    models: [
      {
        model: "flux-2-flex",
        result: "images",
        body: object(
          {
            prompt,
            width: side,
            height: side,
            steps: { type: "integer", minimum: 1, maximum: 50, default: 50 },
            guidance: { type: "number", minimum: 1.5, maximum: 10, default: 5 },
            output_format: format,
            safety_tolerance: tolerance(5),
            seed
          },
          ["prompt"]
        ),
        submit: {
          json: {
            prompt: { $: "$.body.prompt" },
            width: { $: "$.body.width" },
            height: { $: "$.body.height" },
            steps: { $: "$.body.steps" },
            guidance: { $: "$.body.guidance" },
            output_format: { $: "$.body.output_format" },
            safety_tolerance: { $: "$.body.safety_tolerance" },
            seed: { $: "$.body.seed" }
          }
        },
        count: "1",
        // Five cents per started megapixel
        price: {
          per: "expression",
          hold: "divideUp(body.width * body.height, 1000000) * 5000000",
          capture
        },
        source: priceSource
      },
      kontext("flux-kontext-pro", "4000000"),
      kontext("flux-kontext-max", "8000000")
    ]
  }
}
