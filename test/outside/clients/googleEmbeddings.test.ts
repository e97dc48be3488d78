import { GoogleGenAI } from "@google/genai"
import { assert, describe, it } from "vitest"
import { aiSdks } from "../support/aiSdk.ts"
import { worlds } from "../support/worlds.ts"

const model = "gemini-embedding-001"
const maxRetries = 0

for (const world of worlds()) {
  describe(`Google's embeddings at ${world.name}`, () => {
    for (const apiVersion of ["v1", "v1beta"]) {
      it(`@google/genai, one and several, at ${apiVersion}`, async () => {
        const { models } = new GoogleGenAI({
          apiKey: world.key,
          apiVersion,
          httpOptions: { baseUrl: `${world.url}/vendors/google` }
        })
        for (const contents of ["a", ["a", "b"]]) {
          const { embeddings } = await models.embedContent({ model, contents })
          assert.strictEqual(embeddings?.length, [contents].flat().length)
          assert.isNumber(embeddings?.[0]?.values?.[0])
        }
      })
    }

    for (const { ai, google, version } of aiSdks) {
      it(`AI SDK ${version}, one and several`, async () => {
        const embedding = google(world).embedding(model)
        const one = await ai.embed({ model: embedding, value: "a", maxRetries })
        assert.isNumber(one.embedding[0])
        const several = await ai.embedMany({ model: embedding, values: ["a", "b"], maxRetries })
        assert.strictEqual(several.embeddings.length, 2)
      })
    }
  })
}
