import { Schema, Struct } from "effect"
import { Vendor } from "../../../src/catalog/Vendors.ts"
import { describedAdapter } from "../../../src/vendors/described/DescribedJobs.ts"

/** fal's queue as a description. It passes the same contract tests as the adapter in code. */
export const describedFal: typeof Vendor.Encoded = {
  name: "described-fal",
  base: "https://queue.fal.run",
  jobs: {
    auth: { scheme: "header", name: "Authorization", prefix: "Key " },
    submit: {
      path: "/{model}",
      json: { $: "$.body" },
      handle: {
        id: "$.request_id",
        statusUrl: "$.status_url",
        responseUrl: "$.response_url",
        cancelUrl: "$.cancel_url"
      }
    },
    poll: { path: "{statusUrl}" },
    cancel: { method: "PUT", path: "{cancelUrl}", tooLate: [400] },
    state: {
      at: "$.status",
      running: ["IN_QUEUE", "IN_PROGRESS"],
      done: ["COMPLETED"],
      failed: ["FAILED"]
    },
    results: {
      path: "{responseUrl}",
      urls: ["$.images[*]", "$.image", "$.video", "$.videos[*]", "$.audio"]
    },
    error: {
      code: ["$.detail[0].type", "$.detail.error"],
      message: ["$.detail[0].msg", "$.detail.message", "$.detail"]
    },
    failures: [
      { codes: ["content_policy_violation"], class: "CONTENT" },
      { codes: ["file_download_error", "image_load_error", "file_too_large"], class: "MEDIA" },
      { codes: ["EndpointDeprecated"], class: "GONE" },
      { status: 401, class: "OPERATOR" },
      { status: 403, when: 'message.startsWith("User is locked")', class: "OPERATOR" },
      { status: 422, class: "FATAL_CLIENT" },
      { status: 429, class: "RATE_LIMITED" },
      { status: 503, class: "RETRYABLE" }
    ],
    pollsPerSecond: 200,
    models: [
      {
        model: "flux",
        upstreamModel: "fal-ai/flux/dev",
        result: "images",
        body: {
          type: "object",
          properties: {
            prompt: { type: "string", minLength: 1, maxLength: 2000 },
            num_images: { type: "integer", minimum: 1, maximum: 4, default: 1 }
          },
          required: ["prompt"],
          additionalProperties: false
        },
        count: "body.num_images",
        price: { per: "expression", hold: "body.num_images * 3000000" }
      }
    ]
  }
}

const { jobs } = Schema.decodeSync(Vendor)(describedFal)

export const falProtocol = Struct.omit(jobs!, ["models"])
export const falAdapter = describedAdapter("described-fal", falProtocol)
export const falDescribed = { body: jobs!.models[0].body, count: jobs!.models[0].count! }
