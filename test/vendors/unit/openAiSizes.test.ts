import { assert, describe, it } from "@effect/vitest"
import { sizeFault, sizeOf } from "../../../src/vendors/openai/OpenAiSizes.ts"

const ratios = ["1:1", "2:3", "3:2", "3:4", "4:3", "4:5", "5:4", "9:16", "16:9", "21:9"]

/** docs/reference/vendors.md#openai-images */
describe("the size that is sent to OpenAI", () => {
  it("is the body's own, or one of three if gpt-image-1 does not make the default", () => {
    const size = (model: string, text: string | null) => sizeOf(model, { size: text })
    assert.strictEqual(size("gpt-image-2", "1664*928"), "1664x928")
    assert.strictEqual(size("flux-2", "1283*1280"), "1283x1280")
    assert.strictEqual(size("gpt-image-1.5", "1536*1024"), "1536x1024")
    assert.strictEqual(size("gpt-image-1.5", "1280*1280"), "1024x1024")
    assert.strictEqual(size("gpt-image-1.5", "1664*928"), "1536x1024")
    assert.strictEqual(size("chatgpt-image-latest", "928*1664"), "1024x1536")
    assert.isUndefined(size("gpt-image-2", null))
    assert.isUndefined(size("gpt-image-1.5", null))
    assert.isUndefined(sizeOf("gpt-image-2", {}))
  })

  it("has the requested ratio and about the pixels of the tier, within the rules of the model", () => {
    for (const [resolution, side] of [
      ["1K", 1024],
      ["2K", 2048]
    ] as const) {
      for (const ratio of ratios) {
        const size = sizeOf("gpt-image-2.5-sunburst", { aspect_ratio: ratio, resolution })
        const [width = 0, height = 0] = (size ?? "").split("x").map(Number)
        const [wide = 0, high = 0] = ratio.split(":").map(Number)
        assert.strictEqual(width * high, height * wide, `${ratio} ${size}`)
        assert.closeTo((width * height) / side ** 2, 1, 0.25, `${ratio} ${size}`)
        assert.isUndefined(
          sizeFault("gpt-image-2", "size", `${width}*${height}`),
          `${ratio} ${size}`
        )
      }
    }
    assert.strictEqual(sizeOf("gpt-image-1.5", { aspect_ratio: "2:3" }), "1024x1536")
    assert.strictEqual(
      sizeOf("gpt-image-1.5", { aspect_ratio: "1:1", resolution: "2K" }),
      "1024x1024"
    )
  })

  it("has at most 3840*2160 pixels, wide or tall", () => {
    const fault = (size: string) => sizeFault("gpt-image-2", "size", size)
    assert.isUndefined(fault("3840*2160"))
    assert.isUndefined(fault("2160*3840"))
    assert.match(fault("3856*2160") ?? "", /at most 3840\*2160 pixels, got 3856\*2160/u)
    assert.match(fault("3200*3200") ?? "", /at most 3840\*2160 pixels/u)
    assert.match(fault("3088*1024") ?? "", /ratio of 1:3 to 3:1/u)
  })
})
