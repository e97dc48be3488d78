import Anthropic from "@anthropic-ai/sdk"
import { zodOutputFormat } from "@anthropic-ai/sdk/helpers/zod"
import { GoogleGenAI } from "@google/genai"
import { ChatOpenAI } from "@langchain/openai"
import { Agent, OpenAIProvider, Runner } from "@openai/agents"
import OpenAI from "openai"
import { zodResponseFormat, zodTextFormat } from "openai/helpers/zod"
import { assert, describe, it } from "vitest"
import { z } from "zod"
import { aiSdks, subjects } from "../support/aiSdk.ts"
import { worlds } from "../support/worlds.ts"

const Form = z.object({ city: z.string(), days: z.int().min(1) })
/** Fails if the value does not fit the requested schema. */
const isFormed = (value: unknown) => void Form.parse(value)

const prompt = "Where to? As JSON"
const messages = [{ role: "user" as const, content: prompt }]
const maxRetries = 0

for (const world of worlds()) {
  const { key: apiKey, url } = world

  describe(`structured output of openai at ${world.name}`, () => {
    const client = new OpenAI({ apiKey, maxRetries, baseURL: `${url}/v1` })
    const vendor = new OpenAI({ apiKey, maxRetries, baseURL: `${url}/vendors/openai/v1` })
    const model = "gpt-4o"
    const response_format = zodResponseFormat(Form, "trip")
    const text = { format: zodTextFormat(Form, "trip") }

    it("chat, whole", async () => {
      const { choices } = await client.chat.completions.parse({ model, messages, response_format })
      isFormed(choices[0]?.message.parsed)
    })

    it("chat, as a stream", async () => {
      const stream = client.chat.completions.stream({ model, messages, response_format })
      isFormed((await stream.finalChatCompletion()).choices[0]?.message.parsed)
    })

    it("chat, any JSON object", async () => {
      const { choices } = await client.chat.completions.create({
        model,
        messages,
        response_format: { type: "json_object" }
      })
      assert.isObject(JSON.parse(choices[0]?.message.content ?? ""))
    })

    it("responses, whole", async () => {
      isFormed((await vendor.responses.parse({ model, input: prompt, text })).output_parsed)
    })

    it("responses, as a stream", async () => {
      const stream = vendor.responses.stream({ model, input: prompt, text })
      isFormed((await stream.finalResponse()).output_parsed)
    })
  })

  describe(`structured output of @anthropic-ai/sdk at ${world.name}`, () => {
    const { messages: client } = new Anthropic({
      apiKey,
      maxRetries,
      baseURL: `${url}/vendors/anthropic`
    })
    const output_config = { format: zodOutputFormat(Form) }
    const asked = { model: "claude-sonnet-4-5", max_tokens: 100, messages, output_config }

    it("messages, whole", async () => {
      isFormed((await client.parse(asked)).parsed_output)
    })

    it("messages, as a stream", async () => {
      isFormed((await client.stream(asked).finalMessage()).parsed_output)
    })
  })

  describe(`structured output of @google/genai at ${world.name}`, () => {
    const { models } = new GoogleGenAI({
      apiKey,
      httpOptions: { baseUrl: `${url}/vendors/google` }
    })
    const model = "gemini-2.5-flash"
    const config = {
      responseMimeType: "application/json",
      responseJsonSchema: z.toJSONSchema(Form)
    }

    it("contents, whole", async () => {
      const { text } = await models.generateContent({ model, contents: prompt, config })
      isFormed(JSON.parse(text ?? ""))
    })

    it("contents, as a stream", async () => {
      let text = ""
      const asked = { model, contents: prompt, config }
      for await (const chunk of await models.generateContentStream(asked)) text += chunk.text ?? ""
      isFormed(JSON.parse(text))
    })

    it("contents, with the older schema", async () => {
      const responseSchema = {
        type: "OBJECT",
        properties: { city: { type: "STRING" }, days: { type: "INTEGER", minimum: 1 } },
        required: ["city", "days"]
      }
      const { text } = await models.generateContent({
        model,
        contents: prompt,
        config: { responseMimeType: "application/json", responseSchema }
      })
      isFormed(JSON.parse(text ?? ""))
    })
  })

  describe(`structured output of LangChain at ${world.name}`, () => {
    it.each(["jsonSchema", "jsonMode", "functionCalling"] as const)("by %s", async (method) => {
      const model = new ChatOpenAI({
        model: "gpt-4o",
        apiKey,
        maxRetries,
        configuration: { baseURL: `${url}/v1` }
      })
      // JSON mode sends no schema, so any object is accepted
      const schema = method === "jsonMode" ? z.object({}) : Form
      const made = await model.withStructuredOutput(schema, { method, name: "trip" }).invoke(prompt)
      if (method === "jsonMode") assert.isObject(made)
      else isFormed(made)
    })
  })

  describe(`structured output of @openai/agents at ${world.name}`, () => {
    it.each([
      { name: "chat", base: "/v1", useResponses: false },
      { name: "responses", base: "/vendors/openai/v1", useResponses: true }
    ])("by $name", async ({ base, useResponses }) => {
      const modelProvider = new OpenAIProvider({ apiKey, baseURL: `${url}${base}`, useResponses })
      const runner = new Runner({ modelProvider, tracingDisabled: true })
      const agent = new Agent({ name: "guide", model: "gpt-4o", outputType: Form })
      isFormed((await runner.run(agent, prompt)).finalOutput)
    })
  })

  for (const sdk of aiSdks) {
    const { ai, version } = sdk
    for (const subject of subjects) {
      describe(`structured output of AI SDK ${version} with ${subject.name} at ${world.name}`, () => {
        const model = subject.model(sdk, world)
        const output = ai.Output.object({ schema: Form })

        it("whole", async () => {
          isFormed((await ai.generateText({ model, prompt, output, maxRetries })).output)
        })

        it("as a stream", async () => {
          const stream = ai.streamText({ model, prompt, output, maxRetries, onError: () => {} })
          isFormed(await stream.output)
        })
      })
    }
  }
}
