import { falQueue } from "../../../src/catalog/jobs/Fal.ts"
import type { Vendor } from "../../../src/catalog/Vendors.ts"
import { describedFal } from "./describedFal.ts"

const { jobs } = describedFal

const model = {
  model: "flux",
  upstreamModel: "fal-ai/flux/dev",
  result: "images",
  body: {
    type: "object",
    properties: {
      prompt: { type: "string", minLength: 1, maxLength: 2000 },
      n: { type: "integer", minimum: 1, maximum: 4, default: 1 }
    },
    required: ["prompt"],
    additionalProperties: false
  },
  count: "body.n",
  price: { per: "expression", hold: "body.n * 3000000" }
} as const

/** fal's queue with callbacks, whose URL is a parameter of the submit. */
export const callingFal: typeof Vendor.Encoded = {
  ...describedFal,
  name: "calling-fal",
  jobs: {
    ...jobs!,
    submit: {
      ...jobs!.submit,
      json: { prompt: { $: "$.body.prompt" }, num_images: { $: "$.body.n" } }
    },
    callbacks: falQueue.callbacks!,
    models: [model]
  }
}

/** Replicate's predictions with callbacks, whose URL is in the body and is shown by the list. */
export const callingReplicate: typeof Vendor.Encoded = {
  name: "calling-replicate",
  base: "https://api.replicate.com",
  jobs: {
    submit: {
      path: "/v1/models/{model}/predictions",
      json: {
        input: { prompt: { $: "$.body.prompt" }, num_outputs: { $: "$.body.n" } },
        webhook: { $: "$.callback" },
        webhook_events_filter: { $if: "callback != null", $then: ["completed"] }
      },
      handle: { id: "$.id" }
    },
    poll: { path: "/v1/predictions/{id}" },
    cancel: { method: "POST", path: "/v1/predictions/{id}/cancel" },
    state: {
      at: "$.status",
      running: ["starting", "processing"],
      done: ["succeeded"],
      failed: ["failed", "canceled"]
    },
    results: { urls: ["$.output[*]", "$.output"], shortLived: true },
    error: { message: ["$.detail"] },
    jobError: { message: ["$.error", "$.status"] },
    failures: [{ status: 422, class: "FATAL_CLIENT" }],
    list: {
      path: "/v1/predictions",
      jobs: "$.results[*]",
      id: "$.id",
      createdAt: "$.created_at",
      shows: [{ listed: "$.input.prompt", sent: "$.body.prompt" }],
      callback: "$.webhook"
    },
    callbacks: {
      proof: {
        scheme: "standard-webhooks",
        secret: { path: "/v1/webhooks/default/secret", at: "$.key" }
      }
    },
    models: [{ ...model, upstreamModel: "black-forest-labs/flux-schnell" }]
  }
}

/** A vendor whose callbacks have no signature. */
export const callingUnsigned: typeof Vendor.Encoded = {
  ...callingFal,
  name: "calling-unsigned",
  jobs: { ...callingFal.jobs!, callbacks: { parameter: "fal_webhook", proof: { scheme: "url" } } }
}
