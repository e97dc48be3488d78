import { assert, describe, it } from "@effect/vitest"
import { Result } from "effect"
import { falModel, replicateModel } from "../../../src/catalog/jobs/PublishedModel.ts"
import type { PublishedModel } from "../../../src/catalog/jobs/PublishedModel.ts"
import {
  falDocument,
  falImages,
  falVideo,
  replicateCaption,
  replicateImages,
  replicateModelOf
} from "../../support/publishedModels.ts"

/** docs/vendors-as-files.md#import-a-model: what a published schema becomes. */

const made = (result: Result.Result<PublishedModel, string>) => Result.getOrThrow(result)
const refused = (result: Result.Result<PublishedModel, string>) =>
  Result.isFailure(result) ? result.failure : "accepted"

const ofInput = (input: object, more: object = {}) =>
  falModel({
    id: "a/b",
    document: falDocument(
      "a/b",
      "text-to-image",
      input,
      {
        properties: { images: { type: "array", items: { $ref: "#/components/schemas/Image" } } }
      },
      more
    )
  })

describe("a model of fal", () => {
  it("has the fields of its document in their order, its media, count and results", () => {
    const { body, count, media, notes, output, result } = made(
      falModel({ id: "acme-ai/brush/edit", document: falImages })
    )
    assert.deepStrictEqual(body, {
      type: "object",
      properties: {
        prompt: {
          type: "string",
          minLength: 3,
          maxLength: 50_000,
          description: "What the picture shows."
        },
        image_urls: {
          type: "array",
          items: { type: "string" },
          maxItems: 4,
          description: "URLs of the pictures."
        },
        num_images: { type: "integer", minimum: 1, maximum: 4, default: 1 },
        image_size: {
          anyOf: [
            {
              type: "object",
              properties: {
                width: { type: "integer", exclusiveMinimum: 0, maximum: 14142, default: 512 },
                height: { type: "integer", exclusiveMinimum: 0, maximum: 14142, default: 512 }
              },
              required: []
            },
            { type: "string", enum: ["square_hd", "landscape_4_3"] }
          ],
          default: "landscape_4_3"
        },
        seed: { anyOf: [{ type: "integer" }, { type: "null" }] }
      },
      required: ["prompt", "image_urls"],
      additionalProperties: false
    })
    assert.deepStrictEqual(media, { image_urls: { kind: "image" } })
    assert.strictEqual(count, "body.num_images")
    assert.deepStrictEqual([result, output], ["images", ["images"]])
    assert.deepStrictEqual(notes, [
      "sync_mode is left out: its results would be part of the response",
      "webhook is left out: every model has this field"
    ])
  })

  it("makes the results that its output, its category or the operator says", () => {
    const video = made(falModel({ id: "acme-ai/film", document: falVideo }))
    assert.deepStrictEqual([video.result, video.output], ["videos", ["video"]])
    assert.deepStrictEqual(video.media, {
      image_url: { kind: "image" },
      tail_image_url: { kind: "image" }
    })
    const file = { $ref: "#/components/schemas/File" }
    const of = (category: string, properties: object, result?: "meshes") =>
      falModel({
        id: "a/b",
        result,
        document: falDocument("a/b", category, { properties: {} }, { properties })
      })
    const nested = made(
      of("text-to-audio", { result: { type: "object", properties: { out: file } } })
    )
    assert.deepStrictEqual([nested.result, nested.output], ["audios", ["result.out"]])
    assert.strictEqual(made(of("text-to-3d", { out: file })).result, "meshes")
    assert.strictEqual(made(of("vision", { text: { type: "string" } })).result, "documents")
    assert.include(refused(of("other", { out: file })), "does not say what the model makes")
    assert.strictEqual(made(of("other", { out: file }, "meshes")).result, "meshes")
  })
})

describe("a model of Replicate", () => {
  it("is run by name if it is the vendor's, and in the version that was read if it is a user's", () => {
    const images = made(
      replicateModel({ id: "black-forest-labs/flux-schnell", document: replicateImages })
    )
    assert.deepStrictEqual(
      [images.upstreamModel, images.result, images.output, images.count],
      [
        "black-forest-labs/flux-schnell",
        "images",
        undefined,
        "has(body.num_outputs) ? body.num_outputs : 1"
      ]
    )
    assert.deepStrictEqual(Object.keys(Object(images.body["properties"])), [
      "prompt",
      "aspect_ratio",
      "num_outputs",
      "image",
      "output_format"
    ])
    assert.deepStrictEqual(Object(images.body["properties"]).aspect_ratio, {
      type: "string",
      enum: ["1:1", "16:9"],
      default: "1:1"
    })
    const caption = made(replicateModel({ id: "acme/model", document: replicateCaption }))
    assert.strictEqual(caption.upstreamModel, `acme/model:${replicateCaption.latest_version.id}`)
    assert.deepStrictEqual(
      [caption.result, caption.media],
      ["documents", { image: { kind: "image" } }]
    )
  })

  it("is refused without a version or a schema", () => {
    for (const document of [{}, [], null, "text", { latest_version: null }, replicateModelOf({})]) {
      assert.include(refused(replicateModel({ id: "a/b", document })), "no version with a schema")
    }
  })
})

describe("a hostile schema", () => {
  const self = {
    Self: { type: "object", properties: { again: { $ref: "#/components/schemas/Self" } } }
  }
  const property = { $ref: "#/components/schemas/Self" }

  it("loses a field that refers to itself, or is refused if the field is required", () => {
    const fields = { properties: { prompt: { type: "string" }, self: property } }
    const { body, notes } = made(ofInput(fields, self))
    assert.deepStrictEqual(Object.keys(Object(body["properties"])), ["prompt"])
    assert.include(notes.join(), "refers to itself")
    assert.include(refused(ofInput({ ...fields, required: ["self"] }, self)), "its field self")
    assert.include(
      refused(ofInput({ allOf: [{ $ref: "#/components/schemas/ModelInput" }] })),
      "itself"
    )
  })

  it("is read no further than its bound if it repeats itself without end", () => {
    const many = Object.fromEntries(
      Array.from({ length: 12 }, (_, level) => [
        `L${level}`,
        {
          type: "object",
          properties: Object.fromEntries(
            Array.from({ length: 10 }, (__, index) => [
              `p${index}`,
              { $ref: `#/components/schemas/L${level + 1}` }
            ])
          )
        }
      ])
    )
    const input = { properties: { bomb: { $ref: "#/components/schemas/L0" } }, required: ["bomb"] }
    assert.include(refused(ofInput(input, { ...many, L12: { type: "string" } })), "more than 3000")
  })

  it("is refused if it is deep or wide or refers elsewhere", () => {
    const deep = (levels: number): object =>
      levels === 0 ? { type: "string" } : { type: "array", items: deep(levels - 1) }
    const ofField = (schema: object) =>
      refused(ofInput({ properties: { f: schema }, required: ["f"] }))
    assert.include(ofField(deep(17)), "levels")
    assert.include(ofField(deep(99)), "nested more than 100 levels")
    assert.include(ofField({ $ref: "https://evil.example/schema" }), "does not exist")
    assert.include(ofField({ $ref: "#/components/schemas/constructor" }), "does not exist")
    assert.include(ofField({ $ref: "#/components/schemas/__proto__" }), "does not exist")
    const wide = Object.fromEntries(Array.from({ length: 101 }, (_, i) => [`f${i}`, {}]))
    assert.include(refused(ofInput({ properties: wide })), "more than 100 fields")
  })

  it("leaves no trace of prototype names, patterns and odd keywords", () => {
    const input = JSON.parse(`{"properties": {
      "__proto__": {"type": "string"},
      "constructor": {"type": "string", "pattern": "(a+)+$", "default": null},
      "bad name": {"type": "string"},
      "size": {"type": "number", "minimum": 1, "exclusiveMinimum": true, "uniqueItems": true},
      "odd": {"type": "wrong", "enum": [{}], "minLength": -1, "maxLength": "x", "x-html": "<b>"}
    }}`)
    const { body, notes } = made(ofInput(input))
    assert.deepStrictEqual(body["properties"], {
      size: { type: "number", exclusiveMinimum: 1 },
      odd: {}
    })
    assert.lengthOf(notes, 3)
    assert.isUndefined(({} as Record<string, unknown>)["type"])
  })
})
