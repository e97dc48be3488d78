import { HumanMessage, ToolMessage } from "@langchain/core/messages"
import { tool } from "@langchain/core/tools"
import { ChatOpenAI, OpenAIEmbeddings } from "@langchain/openai"
import { assert, describe, it } from "vitest"
import { z } from "zod"
import { worlds } from "../support/worlds.ts"

describe.each(worlds())("LangChain at $name", ({ key: apiKey, text, url }) => {
  describe.each([
    { name: "chat", base: "/v1", useResponsesApi: false },
    { name: "responses", base: "/vendors/openai/v1", useResponsesApi: true }
  ])("by $name", ({ base, useResponsesApi }) => {
    const model = new ChatOpenAI({
      model: "gpt-4o",
      apiKey,
      useResponsesApi,
      maxRetries: 0,
      configuration: { baseURL: `${url}${base}` }
    })

    it("chats, whole and as a stream", async () => {
      const whole = await model.invoke("Where to?")
      assert.strictEqual(whole.text, text)
      const usage = Object(whole.usage_metadata)
      assert.isAbove(usage["total_tokens"], 0)
      let words = ""
      for await (const chunk of await model.stream("Where to?")) words += chunk.text
      assert.strictEqual(words, text)
    })

    it("calls a tool, and returns words after its result", async () => {
      const weather = tool(({ city }: { city: string }) => `sunny in ${city}`, {
        name: "weather",
        schema: z.object({ city: z.string() })
      })
      const bound = model.bindTools([weather])
      // The sandbox calls the tool that the prompt names
      const question = new HumanMessage("Where to? [[sim:tool=weather]]")
      const first = await bound.invoke([question])
      const [call] = first.tool_calls ?? []
      assert.strictEqual(call?.name, "weather")
      const said = await weather.invoke({ city: String(call?.args["city"]) })
      const result = new ToolMessage({ content: said, tool_call_id: call?.id ?? "" })
      const last = await bound.invoke([question, first, result])
      assert.strictEqual(last.text, text)
    })
  })

  it("embeds", async () => {
    const embeddings = new OpenAIEmbeddings({
      model: "text-embedding-3-small",
      apiKey,
      maxRetries: 0,
      configuration: { baseURL: `${url}/vendors/openai/v1` }
    })
    assert.isNumber((await embeddings.embedQuery("a"))[0])
    assert.strictEqual((await embeddings.embedDocuments(["a", "b"])).length, 2)
  })
})
