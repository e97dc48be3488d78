import Anthropic from "@anthropic-ai/sdk"
import { betaZodTool } from "@anthropic-ai/sdk/helpers/beta/zod"
import { assert, describe, it } from "vitest"
import { z } from "zod"
import { worlds } from "../support/worlds.ts"

const model = "claude-sonnet-4-5"
const messages = [{ role: "user" as const, content: "Where to?" }]
const asked = { model, max_tokens: 100, messages }
/** The sandbox calls a tool that the prompt names. */
const toolAsked = {
  ...asked,
  messages: [{ role: "user" as const, content: "Where to? [[sim:tool=weather]]" }]
}

describe.each(worlds())("the @anthropic-ai/sdk package at $name", ({ key, text, url }) => {
  const client = new Anthropic({
    apiKey: key,
    baseURL: `${url}/vendors/anthropic`,
    maxRetries: 0
  })

  it("sends messages, whole and as a stream", async () => {
    const { content, usage } = await client.messages.create(asked)
    assert.strictEqual(content[0]?.type === "text" && content[0].text, text)
    assert.isAbove(usage.output_tokens, 0)
    assert.strictEqual(await client.messages.stream(asked).finalText(), text)
  })

  it("uses a tool, and streams its input", async () => {
    const input_schema = {
      type: "object" as const,
      properties: { city: { type: "string" } },
      required: ["city"]
    }
    const tools = [{ name: "weather", input_schema }]
    const { content, stop_reason } = await client.messages
      .stream({ ...toolAsked, tools })
      .finalMessage()
    assert.strictEqual(stop_reason, "tool_use")
    const [use] = content
    assert.isString(use?.type === "tool_use" && (use.input as { city: string }).city)
  })

  it("runs a tool until the answer is in words", async () => {
    const cities: Array<string> = []
    const weather = betaZodTool({
      name: "weather",
      description: "The weather of a city",
      inputSchema: z.object({ city: z.string() }),
      run: ({ city }) => {
        cities.push(city)
        return "sunny"
      }
    })
    const last = await client.beta.messages.toolRunner({ ...toolAsked, tools: [weather] })
    assert.strictEqual(last.content[0]?.type === "text" && last.content[0].text, text)
    assert.strictEqual(cities.length, 1)
  })

  it("counts tokens", async () => {
    assert.isAbove((await client.messages.countTokens({ model, messages })).input_tokens, 0)
  })
})
