import type { Vendor } from "../Vendors.ts"
import { object, oneOf, promptOf, seed } from "./Shapes.ts"

const priceSource = "runwayml/skills, api-reference; read 2026-11-26"

const prompt = promptOf(1000)

/** Ratios with 720 lines. The model's other ratios have more lines and cost more. */
const smallImages = ["1280:720", "720:1280", "720:720", "960:720", "720:960", "1680:720"]
const largeImages = [
  "1024:1024",
  "1080:1080",
  "1168:880",
  "1360:768",
  "1440:1080",
  "1080:1440",
  "1808:768",
  "1920:1080",
  "1080:1920",
  "2112:912"
]

/** Runway's credit is a US cent, like a credit of the gateway. The poll of an ended job shows its cost. */
const capture = "timesUp(usage.credits, 1000000)"

const picture = {
  kind: "image",
  formats: ["JPEG", "PNG", "WEBP"],
  bytesMax: 3_900_000
} as const

/**
 * Runway, based on its client `@runwayml/sdk` 4.20.1 and its error pages; test/outside/adapters/runway.test.ts compares
 * the requests. Its 504 does not mean that nothing was bought. docs/reference/vendors.md#job-vendors
 */
export const runway: Vendor = {
  name: "runway",
  base: "https://api.dev.runwayml.com",
  jobs: {
    headers: { "X-Runway-Version": "2024-11-06" },
    submit: {
      handle: { id: "$.id" }
    },
    poll: { path: "/v1/tasks/{id}", seconds: 5 },
    cancel: { method: "DELETE", path: "/v1/tasks/{id}", tooLate: [404] },
    state: {
      at: "$.status",
      running: ["PENDING", "THROTTLED", "RUNNING"],
      done: ["SUCCEEDED"],
      failed: ["FAILED", "CANCELLED"]
    },
    progress: { at: "$.progress", of: 1 },
    results: { urls: ["$.output[*]"] },
    error: { message: ["$.error"] },
    jobError: { code: ["$.failureCode"], message: ["$.failure", "$.status"] },
    failures: [
      { codes: ["SAFETY.*", "INPUT_PREPROCESSING.SAFETY.*"], class: "CONTENT" },
      { codes: ["ASSET.INVALID"], class: "MEDIA" },
      {
        status: 400,
        when: 'message.startsWith("You do not have enough credits")',
        class: "OPERATOR"
      },
      { status: 400, class: "FATAL_CLIENT" },
      { status: 401, class: "OPERATOR" },
      { status: 404, class: "GONE" },
      { status: 429, class: "RATE_LIMITED" },
      { status: 502, class: "RETRYABLE" },
      { status: 503, class: "RETRYABLE" }
    ],
    usage: { credits: "$.cost.credits" },
    pollsPerSecond: 20,
    models: [
      {
        model: "gen4_image",
        result: "images",
        body: object(
          {
            prompt,
            ratio: oneOf([...smallImages, ...largeImages], "1920:1080"),
            images: {
              type: "array",
              items: { type: "string" },
              maxItems: 3,
              description: "Pictures to follow"
            },
            seed
          },
          ["prompt"]
        ),
        media: { images: picture },
        submit: {
          path: "/v1/text_to_image",
          json: {
            model: { $: "$.model" },
            promptText: { $: "$.body.prompt" },
            ratio: { $: "$.body.ratio" },
            referenceImages: {
              $if: "has(body.images) && size(body.images) > 0",
              $then: { $each: "$.body.images[*]", $as: { uri: { $: "$.item" } } }
            },
            seed: { $: "$.body.seed" }
          }
        },
        count: "1",
        price: {
          per: "expression",
          hold: `body.ratio in ${JSON.stringify(smallImages)} ? 5000000 : 8000000`,
          capture
        },
        source: priceSource
      },
      {
        model: "gen4.5",
        result: "videos",
        body: object(
          {
            prompt,
            ratio: oneOf(["1280:720", "720:1280"], "1280:720"),
            duration: { type: "integer", minimum: 2, maximum: 10, default: 5 },
            seed
          },
          ["prompt"]
        ),
        submit: {
          path: "/v1/text_to_video",
          json: {
            model: { $: "$.model" },
            promptText: { $: "$.body.prompt" },
            ratio: { $: "$.body.ratio" },
            duration: { $: "$.body.duration" },
            seed: { $: "$.body.seed" }
          }
        },
        count: "1",
        price: { per: "expression", hold: "body.duration * 12000000", capture },
        source: priceSource
      },
      {
        model: "gen4_turbo",
        result: "videos",
        body: object(
          {
            prompt,
            image: { type: "string", description: "The first frame" },
            ratio: oneOf(
              ["1280:720", "720:1280", "1104:832", "832:1104", "960:960", "1584:672"],
              "1280:720"
            ),
            duration: { type: "integer", minimum: 2, maximum: 10, default: 5 },
            seed
          },
          ["image"]
        ),
        media: { image: picture },
        submit: {
          path: "/v1/image_to_video",
          json: {
            model: { $: "$.model" },
            promptText: { $: "$.body.prompt" },
            promptImage: { $: "$.body.image" },
            ratio: { $: "$.body.ratio" },
            duration: { $: "$.body.duration" },
            seed: { $: "$.body.seed" }
          }
        },
        count: "1",
        price: { per: "expression", hold: "body.duration * 5000000", capture },
        source: priceSource
      }
    ]
  }
}
