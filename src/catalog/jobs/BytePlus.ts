import type { Vendor } from "../Vendors.ts"
import { object, oneOf, promptOf, seed } from "./Shapes.ts"

const priceSource = "BytePlus's price list as public repositories quote it; read 2026-11-26"

const prompt = promptOf(4000)
const watermark = { type: "boolean", default: false }
const frame = { kind: "image", sideMin: 300, sideMax: 6000 } as const

const frameContent = (field: string, role: string) => ({
  $if: `has(body.${field})`,
  $then: { type: "image_url", image_url: { url: { $: `$.body.${field}` } }, role }
})

/** The most tokens: 1,024 pixels each, of 24 frames a second and one more; a frame has at most so many pixels. */
const tokens =
  'divideUp((body.resolution == "480p" ? 430000 : 965000) * (body.duration * 24 + 1), 1024)'

/** At one price for an image of any size. */
const seedream = (
  model: string,
  upstreamModel: string,
  sizes: ReadonlyArray<string>,
  each: number
) =>
  ({
    model,
    upstreamModel,
    result: "images",
    body: object(
      {
        prompt,
        images: {
          type: "array",
          items: { type: "string" },
          maxItems: 10,
          description: "Pictures to edit or to follow"
        },
        size: oneOf(sizes, "2K"),
        watermark
      },
      ["prompt"]
    ),
    media: { images: { kind: "image", bytesMax: 10_000_000 } },
    submit: {
      path: "/images/generations",
      json: {
        model: { $: "$.model" },
        prompt: { $: "$.body.prompt" },
        image: {
          $if: "has(body.images) && size(body.images) > 0",
          $then: { $: "$.body.images" }
        },
        size: { $: "$.body.size" },
        sequential_image_generation: "disabled",
        response_format: "url",
        watermark: { $: "$.body.watermark" }
      },
      // They last for a day
      results: { urls: ["$.data[*].url"], shortLived: true }
    },
    count: "1",
    price: { per: "expression", hold: `${each}`, capture: `usage.images * ${each}` },
    source: priceSource
  }) as const

/**
 * Seedance and Seedream of BytePlus ModelArk, by its client `byteplus-python-sdk-v2` 3.0.63 and its page of errors;
 * test/outside/languages/bytePlus.test.ts compares the requests. A 500 does not say that nothing was bought. Its list
 * does not show what was asked for, and its cancel deletes a task that has ended, with the video: neither is used.
 * docs/reference/vendors.md#job-vendors
 */
export const bytePlus: Vendor = {
  name: "byteplus",
  base: "https://ark.ap-southeast.bytepluses.com/api/v3",
  jobs: {
    submit: { handle: { id: "$.id" } },
    poll: { path: "/contents/generations/tasks/{id}", seconds: 3 },
    state: {
      at: "$.status",
      running: ["queued", "running"],
      done: ["succeeded"],
      failed: ["failed", "cancelled", "expired"]
    },
    // They last for a day
    results: { urls: ["$.content.video_url"], mime: "video/mp4", shortLived: true },
    callbacks: { proof: { scheme: "url" } },
    // An image that failed has its reason in its place
    error: {
      code: ["$.error.code", "$.data[0].error.code"],
      message: ["$.error.message", "$.data[0].error.message"]
    },
    failures: [
      {
        codes: [
          "SensitiveContentDetected*",
          "InputTextSensitiveContentDetected*",
          "InputImageSensitiveContentDetected*",
          "InputVideoSensitiveContentDetected*",
          "InputAudioSensitiveContentDetected*",
          "OutputTextSensitiveContentDetected*",
          "OutputImageSensitiveContentDetected*",
          "OutputVideoSensitiveContentDetected*",
          "OutputAudioSensitiveContentDetected*"
        ],
        class: "CONTENT"
      },
      {
        codes: ["InvalidParameter.OversizedImage", "InvalidParameter.UnsupportedImageFormat"],
        class: "MEDIA"
      },
      { status: 400, class: "FATAL_CLIENT" },
      { status: 401, class: "OPERATOR" },
      { status: 403, class: "OPERATOR" },
      { status: 404, class: "GONE" },
      { status: 429, class: "RATE_LIMITED" }
    ],
    usage: { tokens: "$.usage.completion_tokens", images: "$.usage.generated_images" },
    // As many may wait in the vendor's queue
    concurrent: 120,
    models: [
      {
        model: "seedance-2-0",
        upstreamModel: "dreamina-seedance-2-0-260128",
        result: "videos",
        body: object(
          {
            prompt,
            image: { type: "string", description: "The first frame" },
            last_frame: { type: "string", description: "The last frame; with a first one only" },
            resolution: oneOf(["480p", "720p"], "720p"),
            ratio: {
              type: "string",
              enum: ["16:9", "4:3", "1:1", "3:4", "9:16", "21:9", "adaptive"]
            },
            duration: { type: "integer", minimum: 4, maximum: 15, default: 5 },
            audio: { type: "boolean", default: true },
            watermark,
            seed
          },
          ["prompt"]
        ),
        media: { image: frame, last_frame: frame },
        submit: {
          path: "/contents/generations/tasks",
          json: {
            model: { $: "$.model" },
            content: [
              { type: "text", text: { $: "$.body.prompt" } },
              frameContent("image", "first_frame"),
              frameContent("last_frame", "last_frame")
            ],
            callback_url: { $: "$.callback" },
            resolution: { $: "$.body.resolution" },
            ratio: { $: "$.body.ratio" },
            duration: { $: "$.body.duration" },
            generate_audio: { $: "$.body.audio" },
            watermark: { $: "$.body.watermark" },
            seed: { $: "$.body.seed" }
          }
        },
        count: "1",
        // Seven dollars for a million tokens
        price: { per: "expression", hold: `${tokens} * 700`, capture: "usage.tokens * 700" },
        source: priceSource
      },
      seedream("seedream-5-0-lite", "seedream-5-0-260128", ["2K", "3K"], 3_500_000),
      seedream("seedream-4-5", "seedream-4-5-251128", ["2K", "4K"], 4_000_000)
    ]
  }
}
