import type { Vendor } from "../Vendors.ts"
import { inline, object, oneOf, promptOf } from "./Shapes.ts"

const priceSource =
  "docs.agents.lumalabs.ai/guides/pricing as public repositories quote it; read 2026-11-26"

const prompt = promptOf(6000)
const picture = { kind: "image", formats: ["JPEG", "PNG", "WEBP"], sentAs: "base64" } as const
const ratioOf = (...values: ReadonlyArray<string>) => ({ type: "string", enum: values })

/** Pictures from words, after pictures, or as the edit of one; `hold` without pictures. */
const uni = (model: string, hold: number) =>
  ({
    model,
    result: "images",
    body: object(
      {
        prompt,
        image: { type: "string", description: "The picture to edit" },
        images: {
          type: "array",
          items: { type: "string" },
          maxItems: 8,
          description: "Pictures to follow"
        },
        aspect_ratio: ratioOf("3:1", "2:1", "16:9", "3:2", "1:1", "2:3", "9:16", "1:2", "1:3"),
        output_format: { type: "string", enum: ["png", "jpeg"] }
      },
      ["prompt"]
    ),
    media: { image: picture, images: picture },
    submit: {
      json: {
        model: { $: "$.model" },
        type: { $cel: 'has(body.image) ? "image_edit" : "image"' },
        prompt: { $: "$.body.prompt" },
        source: { $if: "has(body.image)", $then: inline("body.image") },
        image_ref: {
          $if: "has(body.images) && size(body.images) > 0",
          $then: { $each: "$.body.images[*]", $as: inline("item") }
        },
        aspect_ratio: { $: "$.body.aspect_ratio" },
        output_format: { $: "$.body.output_format" }
      }
    },
    count: "1",
    price: {
      per: "expression",
      hold: `${hold} + (has(body.image) ? 300000 : 0) + (has(body.images) ? size(body.images) : 0) * 300000`
    },
    source: priceSource
  }) as const

/**
 * The Agents API of Luma, by its client `luma-agents` 0.5.0 and its page of errors;
 * test/outside/languages/luma.test.ts compares the requests. A 502 does not say that nothing was bought. It has no
 * list, no cancel and no callbacks. docs/reference/vendors.md#job-vendors
 */
export const luma: Vendor = {
  name: "luma",
  base: "https://agents.lumalabs.ai",
  jobs: {
    submit: { path: "/v1/generations", handle: { id: "$.id" } },
    poll: { path: "/v1/generations/{id}", seconds: 3 },
    state: {
      at: "$.state",
      running: ["queued", "processing"],
      done: ["completed"],
      failed: ["failed"]
    },
    // They last for an hour
    results: { urls: ["$.output[*].url"], shortLived: true },
    error: { message: ["$.detail", "$.detail[0].msg"] },
    jobError: { code: ["$.failure_code"], message: ["$.failure_reason", "$.failure_code"] },
    failures: [
      { codes: ["content_moderated"], class: "CONTENT" },
      { codes: ["image_too_large", "unsupported_format", "corrupt_input"], class: "MEDIA" },
      { codes: ["invalid_request"], class: "FATAL_CLIENT" },
      { codes: ["budget_exhausted"], class: "OPERATOR" },
      { status: 400, class: "FATAL_CLIENT" },
      { status: 401, class: "OPERATOR" },
      { status: 402, class: "OPERATOR" },
      { status: 403, class: "OPERATOR" },
      { status: 413, class: "MEDIA" },
      { status: 422, class: "FATAL_CLIENT" },
      { status: 429, class: "RATE_LIMITED" },
      { status: 503, class: "RETRYABLE" }
    ],
    models: [
      uni("uni-1", 4_040_000),
      uni("uni-1-max", 10_000_000),
      {
        model: "ray-3.2",
        result: "videos",
        body: object(
          {
            prompt,
            start_frame: { type: "string", description: "The first frame; with 5s only" },
            end_frame: { type: "string", description: "The last frame; with 5s only" },
            aspect_ratio: ratioOf("9:16", "3:4", "1:1", "4:3", "16:9", "21:9"),
            resolution: oneOf(["540p", "720p", "1080p"], "720p"),
            duration: oneOf(["5s", "10s"], "5s"),
            loop: { type: "boolean", description: "With 5s only" }
          },
          ["prompt"]
        ),
        media: { start_frame: picture, end_frame: picture },
        submit: {
          json: {
            model: { $: "$.model" },
            type: "video",
            prompt: { $: "$.body.prompt" },
            aspect_ratio: { $: "$.body.aspect_ratio" },
            video: {
              resolution: { $: "$.body.resolution" },
              duration: { $: "$.body.duration" },
              loop: { $: "$.body.loop" },
              start_frame: { $if: "has(body.start_frame)", $then: inline("body.start_frame") },
              end_frame: { $if: "has(body.end_frame)", $then: inline("body.end_frame") }
            }
          }
        },
        count: "1",
        // Ten seconds cost three times as much as five
        price: {
          per: "expression",
          hold: '(body.resolution == "540p" ? 15000000 : body.resolution == "720p" ? 30000000 : 120000000) * (body.duration == "10s" ? 3 : 1)'
        },
        source: priceSource
      }
    ]
  }
}
