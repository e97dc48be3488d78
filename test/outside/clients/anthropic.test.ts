import Anthropic from "@anthropic-ai/sdk"
import { betaZodTool } from "@anthropic-ai/sdk/helpers/beta/zod"
import { setTimeout } from "node:timers/promises"
import { assert, describe, it } from "vitest"
import { z } from "zod"
import { worlds } from "../support/worlds.ts"

const model = "claude-sonnet-4-5"
const messages = [{ role: "user" as const, content: "Where to?" }]
const asked = { model, max_tokens: 100, messages }
/** The sandbox calls the tool that the prompt names. */
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

  it("runs a tool until the answer is text", async () => {
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

/** The recorded upstream has no batches. */
const sandbox = worlds().filter(({ name }) => name === "the sandbox")

describe.each(sandbox)(
  "batches of the @anthropic-ai/sdk package at $name",
  ({ key, text, url }) => {
    const client = new Anthropic({
      apiKey: key,
      baseURL: `${url}/vendors/anthropic`,
      maxRetries: 0
    })

    it("runs a batch, reads its results and deletes it", async () => {
      const { batches } = client.messages
      const requests = ["a", "b"].map((custom_id) => ({ custom_id, params: asked }))
      const { id } = await batches.create({ requests })
      for (;;) {
        if ((await batches.retrieve(id)).processing_status === "ended") break
        await setTimeout(100)
      }
      const listed = await Array.fromAsync(batches.list({ limit: 1 }))
      assert.include(
        listed.map((it) => it.id),
        id
      )
      const texts: Array<string> = []
      for await (const { custom_id, result } of await batches.results(id)) {
        const [block] = result.type === "succeeded" ? result.message.content : []
        texts.push(`${custom_id}: ${block?.type === "text" ? block.text : ""}`)
      }
      assert.sameMembers(texts, [`a: ${text}`, `b: ${text}`])
      assert.strictEqual((await batches.delete(id)).type, "message_batch_deleted")
    }, 60_000)
  }
)
