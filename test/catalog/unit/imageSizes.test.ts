import { assert, describe, it } from "@effect/vitest"
import { Effect, Result } from "effect"
import * as fc from "fast-check"
import { decodeBody } from "../../../src/catalog/bodies/Decode.ts"
import { defaultSize, nearestSize, pixelsOf } from "../../../src/catalog/bodies/ImageSizes.ts"
import { builtInEntries } from "../../../src/catalog/BuiltInModels.ts"
import { refusedFields } from "../../../src/vendors/BodyFaults.ts"

const entries = builtInEntries.filter(({ result }) => result === "images")

const nearest = (label: (typeof entries)[number]["label"], size: string, upstream = "") => {
  const entry = entries.find((it) => it.label === label)!
  const wanted = pixelsOf(size)!
  const of =
    upstream === ""
      ? entry
      : { ...entry, adapter: "openai-image" as const, upstreamModel: upstream }
  return nearestSize(label, wanted, (fields) => refusedFields(of, fields).length === 0)?.name
}

/** docs/reference/shapes.md#sizes */
describe("the nearest size of a model", () => {
  it("is the requested size, else one of the same or the next ratio with the next area", () => {
    assert.strictEqual(nearest("text-to-image-max", "1024x1024"), "1328x1328")
    assert.strictEqual(nearest("text-to-image-max", "1792x1024"), "1664x928")
    assert.strictEqual(nearest("text-to-image-max", "1024x1536"), "1104x1472")
    assert.strictEqual(nearest("text-to-image-preview", "1792x1024"), "1792x1024")
    assert.strictEqual(nearest("text-to-image-preview", "512x384"), "896x672")
    assert.strictEqual(nearest("text-to-image-preview", "4096x4096"), "1440x1440")
    assert.strictEqual(nearest("image-edit", "8000x1000"), "2880x720")
    assert.strictEqual(nearest("image-edit-max", "256x256"), "512x512")
    assert.strictEqual(nearest("image-edit-max", "9000x1000"), "2048x512")
    assert.strictEqual(nearest("image-edit-pro", "1536x1024"), "3:2 1K")
    assert.strictEqual(nearest("image-edit-pro", "3840x2160"), "16:9 2K")
  })

  it("is one that the upstream model accepts", () => {
    assert.strictEqual(nearest("text-to-image-preview", "1792x1024", "gpt-image-1.5"), "1536x1024")
    assert.strictEqual(nearest("text-to-image-preview", "1000x1000", "gpt-image-2"), "1008x1008")
    assert.strictEqual(nearest("image-edit-pro", "1024x1792", "gpt-image-1.5"), "2:3 1K")
    assert.strictEqual(nearest("text-to-image-max", "1024x1024", "gpt-image-1.5"), undefined)
  })

  it("is the model's default if none is requested and the body has one", () => {
    const names = entries.map(({ label }) => [label, defaultSize(label)?.width])
    assert.deepStrictEqual(Object.fromEntries(names), {
      "image-edit": 1280,
      "text-to-image-max": 1664,
      "image-edit-pro": 2048,
      "image-edit-max": undefined,
      "text-to-image-preview": 1280
    })
  })

  it("is accepted by the body of each model, whatever size is requested", async () => {
    const side = fc.integer({ min: 1, max: 999_999_999 })
    for (const { label } of entries) {
      for (const [width, height] of fc.sample(fc.tuple(side, side), 50)) {
        const size = nearestSize(label, { width, height }, () => true)
        assert.isDefined(size, `${label} ${width}x${height}`)
        const images = label.startsWith("image") ? { images: ["https://example.com/a.png"] } : {}
        const decoded = await Effect.runPromise(
          Effect.result(decodeBody(label, { prompt: "a", ...images, ...size?.fields }))
        )
        assert.isTrue(Result.isSuccess(decoded), `${label} ${width}x${height} ${size?.name}`)
      }
    }
  })
})
