import Anthropic from "@anthropic-ai/sdk"
import { ChatOpenAI, OpenAIEmbeddings } from "@langchain/openai"
import { Agent, OpenAIProvider, Runner } from "@openai/agents"
import OpenAI from "openai"
import { assert, describe, it } from "vitest"
import { aiSdks } from "../support/aiSdk.ts"
import { worlds } from "../support/worlds.ts"

const prompt = "Where to?"
const model = "gpt-4o"
const embeddingModel = "text-embedding-3-small"
const maxRetries = 0

// What a client calls when it is given only the address `/v1` and a key.

for (const world of worlds()) {
  const { key: apiKey, text, url } = world
  const baseURL = `${url}/v1`
  const configuration = { baseURL }

  describe(`clients with their defaults and the base /v1 at ${world.name}`, () => {
    it("openai: responses and embeddings", async () => {
      const client = new OpenAI({ apiKey, baseURL, maxRetries })
      assert.strictEqual(
        (await client.responses.create({ model, input: prompt })).output_text,
        text
      )
      const { data } = await client.embeddings.create({ model: embeddingModel, input: "a" })
      assert.isNumber(data[0]?.embedding[0])
    })

    for (const { ai, openai, version } of aiSdks) {
      it(`AI SDK ${version}: responses`, async () => {
        const made = await ai.generateText({
          model: openai(world, "/v1")(model),
          prompt,
          maxRetries
        })
        assert.strictEqual(made.text, text)
      })

      it(`AI SDK ${version}: embeddings`, async () => {
        const { embedding } = await ai.embed({
          model: openai(world, "/v1").embedding(embeddingModel),
          value: "a",
          maxRetries
        })
        assert.isNumber(embedding[0])
      })
    }

    it("LangChain: responses", async () => {
      const chat = new ChatOpenAI({
        model,
        apiKey,
        maxRetries,
        configuration,
        useResponsesApi: true
      })
      assert.strictEqual((await chat.invoke(prompt)).text, text)
    })

    it("LangChain: embeddings", async () => {
      const embeddings = new OpenAIEmbeddings({
        model: embeddingModel,
        apiKey,
        maxRetries,
        configuration
      })
      assert.isNumber((await embeddings.embedQuery("a"))[0])
    })

    const runner = () =>
      new Runner({
        modelProvider: new OpenAIProvider({ apiKey, baseURL }),
        tracingDisabled: true
      })

    it("@openai/agents: responses", async () => {
      const agent = new Agent({ name: "guide", model })
      assert.strictEqual((await runner().run(agent, prompt)).finalOutput, text)
    })

    it("@openai/agents: responses of its default model", async () => {
      const agent = new Agent({ name: "guide" })
      assert.strictEqual((await runner().run(agent, prompt)).finalOutput, text)
    })

    it("@anthropic-ai/sdk: messages", async () => {
      const client = new Anthropic({ apiKey, baseURL: url, maxRetries })
      const messages = [{ role: "user" as const, content: prompt }]
      const asked = { model: "claude-sonnet-4-5", max_tokens: 100, messages }
      const { content } = await client.messages.create(asked)
      assert.strictEqual(content[0]?.type === "text" && content[0].text, text)
    })
  })
}
