import { assert, describe, it } from "@effect/vitest"
import { makeUpstreamCatalog } from "../../../src/catalog/UpstreamCatalog.ts"
import { isCredible, usageOf } from "../../../src/catalog/Usage.ts"

const model = makeUpstreamCatalog().priced("google", "gemini-2.5-flash")!

describe("usage figures by modality", () => {
  const usage = (tokenCount: unknown) =>
    usageOf("gemini-generate", {
      usageMetadata: {
        promptTokenCount: 10,
        candidatesTokenCount: 10,
        promptTokensDetails: [{ modality: "AUDIO", tokenCount }],
        candidatesTokensDetails: [{ modality: "IMAGE", tokenCount }]
      }
    })!

  it("have to be counts, as all figures do", () => {
    assert.isTrue(isCredible(usage(5), model))
    for (const count of [-5, 0.5, "5"]) assert.isFalse(isCredible(usage(count), model), `${count}`)
  })
})
