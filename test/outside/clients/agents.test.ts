import {
  Agent,
  OpenAIChatCompletionsModel,
  OpenAIResponsesModel,
  Runner,
  setTracingDisabled,
  tool
} from "@openai/agents"
import OpenAI from "openai"
import { assert, describe, it } from "vitest"
import { z } from "zod"
import { worlds } from "../support/worlds.ts"

setTracingDisabled(true)

/** The sandbox calls the tool that the prompt names. */
const question = "Where to? [[sim:tool=weather]]"

const kinds = [
  { name: "chat", base: "/v1", Model: OpenAIChatCompletionsModel },
  { name: "responses", base: "/vendors/openai/v1", Model: OpenAIResponsesModel }
]

describe.each(worlds())("@openai/agents at $name", ({ key, text, url }) => {
  describe.each(kinds)("by $name", ({ base, Model }) => {
    const client = new OpenAI({ apiKey: key, baseURL: `${url}${base}`, maxRetries: 0 })
    const model = new Model(client, "gpt-4o")
    const runner = new Runner({ tracingDisabled: true })

    for (const stream of [false, true]) {
      it(`runs a tool until the answer is text${stream ? ", streamed" : ""}`, async () => {
        const cities: Array<string> = []
        const weather = tool({
          name: "weather",
          description: "The weather of a city",
          parameters: z.object({ city: z.string() }),
          execute: async ({ city }) => {
            cities.push(city)
            return "sunny"
          }
        })
        const agent = new Agent({ name: "guide", model, tools: [weather] })
        if (stream) {
          const result = await runner.run(agent, question, { stream: true })
          await result.completed
          assert.strictEqual(result.finalOutput, text)
        } else {
          assert.strictEqual((await runner.run(agent, question)).finalOutput, text)
        }
        assert.strictEqual(cities.length, 1)
      })
    }

    it("hands off to another agent", async () => {
      const second = new Agent({ name: "second", model })
      const first = Agent.create({ name: "first", model, handoffs: [second] })
      const result = await runner.run(first, "Where to? [[sim:tool=transfer_to_second]]")
      assert.strictEqual(result.lastAgent?.name, "second")
      assert.strictEqual(result.finalOutput, text)
    })
  })
})
