import { Schema, Struct } from "effect"
import { falQueue } from "../../../src/catalog/jobs/Fal.ts"
import { Vendor } from "../../../src/catalog/Vendors.ts"
import { describedAdapter } from "../../../src/vendors/described/DescribedJobs.ts"

/**
 * fal's queue with a model whose body is described, and without callbacks. It does not describe some refusals, such as 409,
 * 500 and those of a proxy.
 */
export const describedFal: typeof Vendor.Encoded = {
  name: "described-fal",
  base: "https://queue.fal.run",
  jobs: {
    ...Struct.omit(falQueue, ["callbacks"]),
    error: Struct.omit(falQueue.error, ["absent"]),
    failures: [
      ...falQueue.failures.filter(({ when }) => !when?.startsWith("status >= ")),
      { status: 422, class: "FATAL_CLIENT" },
      { status: 503, class: "RETRYABLE" }
    ],
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
