import type { Vendor } from "../../../src/catalog/Vendors.ts"

const prompt = { type: "string", minLength: 1, maxLength: 2000 }

const bodyOf = (properties: object, required: ReadonlyArray<string> = ["prompt"]) => ({
  type: "object",
  properties: { prompt, ...properties },
  required,
  additionalProperties: false
})

/** A vendor whose bodies use none of the gateway's own field names for sizes, numbers, seconds and images. */
export const describedDoors: typeof Vendor.Encoded = {
  name: "doors",
  base: "https://api.doors.example",
  jobs: {
    submit: {
      path: "/v1/{model}",
      json: { $: "$.body" },
      handle: { id: "$.id" }
    },
    poll: { path: "/v1/jobs/{id}" },
    cancel: { method: "DELETE", path: "/v1/jobs/{id}" },
    state: { at: "$.state", running: ["running"], done: ["done"], failed: ["failed"] },
    results: { urls: ["$.files[*]"], json: ["$.answers[*]"] },
    error: { code: ["$.code"], message: ["$.message"] },
    failures: [{ status: 429, class: "RATE_LIMITED" }],
    models: [
      {
        model: "sketch",
        result: "images",
        body: bodyOf({
          how_many: { type: "integer", minimum: 1, maximum: 4, default: 2 },
          ratio: { type: "string", enum: ["1024:1024", "1280:720"] },
          references: { type: "array", items: { type: "string" }, maxItems: 3 }
        }),
        media: { references: { kind: "image" } },
        count: "body.how_many",
        price: { per: "expression", hold: "body.how_many * 2000000" }
      },
      {
        model: "retouch",
        result: "images",
        body: bodyOf({ picture: { type: "string" } }, ["prompt", "picture"]),
        media: { picture: { kind: "image" } },
        count: "1",
        price: { per: "call", amount: "3.00" }
      },
      {
        model: "film",
        result: "videos",
        body: bodyOf({
          duration: { type: "string", enum: ["5", "10"], default: "5" },
          ratio: { type: "string", enum: ["1280:720", "720:1280"], default: "1280:720" },
          first_frame: { type: "string" }
        }),
        media: { first_frame: { kind: "image" } },
        count: "1",
        price: { per: "expression", hold: "int(body.duration) * 1000000" }
      },
      {
        model: "song",
        result: "audios",
        body: bodyOf({ seconds: { type: "integer", minimum: 1, maximum: 30, default: 3 } }),
        count: "1",
        price: { per: "expression", hold: "body.seconds * 500000" }
      },
      {
        model: "caption",
        result: "documents",
        body: bodyOf({ picture: { type: "string" } }, ["picture"]),
        media: { picture: { kind: "image" } },
        count: "1",
        price: { per: "call", amount: "0.50" }
      }
    ]
  }
}
