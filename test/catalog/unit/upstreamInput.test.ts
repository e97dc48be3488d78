import { assert, describe, it } from "vitest"
import { isMapped, upstreamInput } from "../../../src/catalog/UpstreamInput.ts"
import type { UpstreamInput } from "../../../src/catalog/UpstreamInput.ts"

const label = "text-to-image-preview"
const body = {
  prompt: "p",
  n: 2,
  size: "1280*768",
  prompt_extend: true,
  seed: 7,
  safety_filter: true
}

/** docs/catalog.md#input-of-an-added-model, ADR 0143 */
describe("the input of an added model", () => {
  it("has the required fields, the listed ones in their form, and the constants", () => {
    const input: UpstreamInput = {
      fields: { n: "num_images", size: { to: "image_size", as: "size-object" }, seed: null },
      constants: { output_format: "png" }
    }
    assert.deepEqual(upstreamInput(label, body, input), {
      prompt: "p",
      num_images: 2,
      image_size: { width: 1280, height: 768 },
      output_format: "png"
    })
    const fields = ["prompt", "n", "size", "safety_filter", "seed", "prompt_extend"]
    assert.deepEqual(
      fields.map((field) => isMapped(label, field, input)),
      [true, true, true, true, false, false]
    )
  })

  it("may rename a required field or leave it out, and accepts the field in both cases", () => {
    assert.deepEqual(upstreamInput(label, body, { fields: { prompt: "text" } }), { text: "p" })
    const without: UpstreamInput = { fields: { prompt: null } }
    assert.deepEqual(upstreamInput(label, body, without), {})
    assert.isTrue(isMapped(label, "prompt", without))
  })

  it("has only the required fields without a mapping", () => {
    assert.deepEqual(upstreamInput(label, body), { prompt: "p" })
    assert.deepEqual(upstreamInput(label, { ...body, safety_filter: null }), { prompt: "p" })
  })

  it("never sends null", () => {
    assert.deepEqual(upstreamInput(label, { prompt: "p", size: null }, { fields: { size: "s" } }), {
      prompt: "p"
    })
  })
})
