import OpenAI from "openai"
import { assert, describe, it } from "vitest"
import { worlds } from "../support/worlds.ts"

const model = "gpt-4o"
const messages = [{ role: "user" as const, content: "Where to?" }]
/** The sandbox calls the tool that the prompt names. */
const question = "Where to? [[sim:tool=weather]]"
const parameters = {
  type: "object" as const,
  properties: { city: { type: "string" as const } },
  required: ["city"],
  additionalProperties: false
}

describe.each(worlds())("the openai package at $name", ({ key, text, url }) => {
  const client = new OpenAI({ apiKey: key, baseURL: `${url}/v1`, maxRetries: 0 })
  const vendor = new OpenAI({ apiKey: key, baseURL: `${url}/vendors/openai/v1`, maxRetries: 0 })

  it("chats, whole and as a stream", async () => {
    const whole = await client.chat.completions.create({ model, messages })
    assert.strictEqual(whole.choices[0]?.message.content, text)
    assert.isAbove(whole.usage?.total_tokens ?? 0, 0)
    const stream = client.chat.completions.stream({ model, messages })
    assert.strictEqual((await stream.finalChatCompletion()).choices[0]?.message.content, text)
  })

  it("chats with a model of another vendor, whole and as a stream", async () => {
    const other = "deepseek/deepseek-chat"
    const whole = await client.chat.completions.create({ model: other, messages })
    assert.strictEqual(whole.choices[0]?.message.content, text)
    const stream = client.chat.completions.stream({ model: other, messages })
    assert.strictEqual((await stream.finalChatCompletion()).choices[0]?.message.content, text)
    const own = new OpenAI({ apiKey: key, baseURL: `${url}/vendors/deepseek/v1`, maxRetries: 0 })
    const there = await own.chat.completions.create({ model: "deepseek-chat", messages })
    assert.strictEqual(there.choices[0]?.message.content, text)
    const refused = client.chat.completions.create({ model: "deepseek/none", messages })
    assert.match(String(await refused.catch((error: unknown) => error)), /404 .*has no price/u)
  })

  it("runs a tool until the answer is text", async () => {
    const cities: Array<string> = []
    const runner = client.chat.completions.runTools({
      model,
      messages: [{ role: "user", content: question }],
      tools: [
        {
          type: "function",
          function: {
            name: "weather",
            description: "The weather of a city",
            parameters,
            function: (words: string) => {
              cities.push(JSON.parse(words).city)
              return "sunny"
            }
          }
        }
      ]
    })
    assert.strictEqual(await runner.finalContent(), text)
    assert.strictEqual(cities.length, 1)
  })

  it("makes responses, whole and as a stream, with tools", async () => {
    const whole = await vendor.responses.create({ model, input: "Where to?" })
    assert.strictEqual(whole.output_text, text)
    const stream = vendor.responses.stream({ model, input: "Where to?" })
    assert.strictEqual((await stream.finalResponse()).output_text, text)
    const tools = [{ type: "function" as const, name: "weather", parameters, strict: true }]
    const counted = await client.responses.inputTokens.count({ model, input: "Where to?" })
    assert.isAbove(counted.input_tokens, 0)
    const used = await vendor.responses.create({ model, input: question, tools })
    const call = used.output.find((it) => it.type === "function_call")
    assert.strictEqual(call?.type === "function_call" && call.name, "weather")
  })

  it("makes embeddings", async () => {
    const input = ["a", "b"]
    const made = await vendor.embeddings.create({ model: "text-embedding-3-small", input })
    assert.strictEqual(made.data.length, 2)
    assert.isNumber(made.data[1]?.embedding[0])
  })
})
