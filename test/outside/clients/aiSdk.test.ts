import { assert, describe, it } from "vitest"
import { z } from "zod"
import { aiSdks, subjects } from "../support/aiSdk.ts"
import { worlds } from "../support/worlds.ts"

const prompt = "Where to?"
/** The sandbox calls the tool that the prompt names. */
const toolPrompt = `${prompt} [[sim:tool=weather]]`

const cases = worlds().flatMap((world) =>
  aiSdks.flatMap((sdk) => subjects.map((subject) => ({ sdk, subject, world })))
)

for (const { sdk, subject, world } of cases) {
  const { ai, version } = sdk
  describe(`AI SDK ${version} with ${subject.name} at ${world.name}`, () => {
    const model = subject.model(sdk, world)
    const maxRetries = 0

    it("generates text, and streams it", async () => {
      const whole = await ai.generateText({ model, prompt, maxRetries })
      assert.strictEqual(whole.text, world.text)
      assert.strictEqual(whole.finishReason, "stop")
      assert.isAbove(whole.usage.totalTokens ?? 0, 0)
      const stream = ai.streamText({ model, prompt, maxRetries })
      let text = ""
      for await (const part of stream.textStream) text += part
      assert.strictEqual(text, world.text)
      assert.isAbove((await stream.usage).outputTokens ?? 0, 0)
    })

    for (const isStream of [false, true]) {
      it(`runs an agent's loop${isStream ? ", streamed" : ""}`, async () => {
        const cities: Array<string> = []
        const weather = ai.tool({
          description: "The weather of a city",
          inputSchema: z.object({ city: z.string() }),
          execute: async ({ city }) => {
            cities.push(city)
            return "sunny"
          }
        })
        const agent = new ai.ToolLoopAgent({ model, tools: { weather }, maxRetries })
        const made = await (isStream
          ? agent.stream({ prompt: toolPrompt })
          : agent.generate({ prompt: toolPrompt }))
        assert.strictEqual(await made.text, world.text)
        assert.strictEqual((await made.steps).length, 2)
        assert.strictEqual(cities.length, 1)
      })
    }
  })
}

for (const world of worlds()) {
  for (const { ai, openai, version } of aiSdks) {
    it(`AI SDK ${version} embeds with @ai-sdk/openai at ${world.name}`, async () => {
      const { embeddings } = await ai.embedMany({
        model: openai(world, "/vendors/openai/v1").embedding("text-embedding-3-small"),
        values: ["a", "b"],
        maxRetries: 0
      })
      assert.strictEqual(embeddings.length, 2)
    })
  }
}
