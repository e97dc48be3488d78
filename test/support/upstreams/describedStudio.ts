import type { Vendor } from "../../../src/catalog/Vendors.ts"

/** A vendor that uploads media, forms paths from its models' ids, and nests its results in a member. */
export const studio: typeof Vendor.Encoded = {
  name: "studio",
  base: "https://api.studio.example",
  jobs: {
    submit: {
      forms: [{ model: "{owner}/{name}", path: "/v1/{owner}/jobs" }],
      json: { name: { $: "$.named.name" }, input: { $: "$.body" } },
      uploads: { above: 10, path: "/v1/uploads", part: "file", at: "$.file.url" },
      handle: { id: "$.id", self: { url: "$.self", or: "/v1/jobs/{id}" } }
    },
    poll: { path: "{self}" },
    state: { at: "$.state", running: ["running"], done: ["done"], failed: ["failed"] },
    results: { at: "$.made", urls: "usual" },
    error: { message: ["$.message"] },
    failures: [],
    models: [
      {
        model: "paint",
        upstreamModel: "acme/paint",
        result: "images",
        body: {
          type: "object",
          properties: { prompt: { type: "string" }, image: { type: "string" } },
          required: ["prompt", "image"],
          additionalProperties: false
        },
        media: { image: { kind: "image" } },
        price: { per: "call", amount: "1.00" }
      }
    ]
  }
}
