import type { Vendor } from "../../../src/catalog/Vendors.ts"

const prompt = {
  type: "object",
  properties: { prompt: { type: "string", minLength: 1, maxLength: 2000 } },
  required: ["prompt"],
  additionalProperties: false
}

const price = { per: "call", amount: "5.00" } as const

/** A vendor that makes every kind of result, as jobs and in direct responses. */
export const describedKinds: typeof Vendor.Encoded = {
  name: "every-kind",
  base: "https://api.every-kind.example",
  jobs: {
    submit: {
      path: "/v1/{model}/jobs",
      json: { prompt: { $: "$.body.prompt" } },
      handle: { id: "$.id" }
    },
    poll: { path: "/v1/jobs/{id}" },
    state: { at: "$.state", running: ["running"], done: ["done"], failed: ["failed"] },
    results: { urls: ["$.files[*]"], json: ["$.answers[*]"] },
    error: { code: ["$.error.code"], message: ["$.error.message"] },
    failures: [
      { status: 400, codes: ["unsafe"], class: "CONTENT" },
      { status: 429, class: "RATE_LIMITED" }
    ],
    models: [
      { model: "song", result: "audios", body: prompt, price },
      { model: "statue", result: "meshes", body: prompt, price },
      {
        model: "sound",
        result: "audios",
        body: prompt,
        submit: { path: "/v1/sounds", results: { whole: true } },
        price
      },
      {
        model: "sketch",
        result: "images",
        body: prompt,
        submit: { path: "/v1/sketches", results: { base64: ["$.data[*].b64_json"] } },
        price
      },
      {
        model: "caption",
        result: "documents",
        body: prompt,
        submit: { path: "/v1/captions", results: { json: ["$.caption"] } },
        price
      }
    ]
  }
}
