import { Mistral } from "@mistralai/mistralai"
import Groq from "groq-sdk"
import Together from "together-ai"
import { assert, describe, it } from "vitest"
import { z } from "zod"
import { worlds } from "../support/worlds.ts"

/** Vendors without a recording, so only the sandbox responds. */
const sandboxes = worlds().filter(({ name }) => name === "the sandbox")

describe.each(sandboxes)("vendors' own clients at $name", ({ key: apiKey, text, url }) => {
  const messages = [{ role: "user" as const, content: "Where to?" }]

  describe("Mistral's", () => {
    const client = new Mistral({ apiKey, serverURL: `${url}/vendors/mistral` })
    const model = "mistral-small-latest"

    it("chats, whole and as a stream that ends with its usage", async () => {
      const whole = await client.chat.complete({ model, messages })
      assert.strictEqual(whole.choices[0]?.message?.content, text)
      let words = ""
      let total = 0
      for await (const { data } of await client.chat.stream({ model, messages })) {
        words += String(data.choices[0]?.delta.content ?? "")
        total = data.usage?.totalTokens ?? total
      }
      assert.strictEqual(words, text)
      assert.strictEqual(total, whole.usage.totalTokens)
    })

    it("parses a structured response", async () => {
      const responseFormat = z.object({ name: z.string(), age: z.number() })
      const { choices } = await client.chat.parse({ model, messages, responseFormat })
      assert.isString(Object(choices?.[0]?.message?.parsed)["name"])
    })

    it("embeds, and lists models", async () => {
      const { data } = await client.embeddings.create({
        model: "mistral-embed",
        inputs: ["a", "b"]
      })
      assert.lengthOf(data, 2)
      const listed = (await client.models.list()).data ?? []
      assert.include(
        listed.flatMap((it) => ("id" in it ? [it.id] : [])),
        model
      )
    })
  })

  it("Groq's chats, whole and as a stream, and lists models", async () => {
    const client = new Groq({ apiKey, baseURL: `${url}/vendors/groq`, maxRetries: 0 })
    const model = "llama-3.1-8b-instant"
    const whole = await client.chat.completions.create({ model, messages })
    assert.strictEqual(whole.choices[0]?.message.content, text)
    let words = ""
    for await (const { choices } of await client.chat.completions.create({
      model,
      messages,
      stream: true
    })) {
      words += choices[0]?.delta.content ?? ""
    }
    assert.strictEqual(words, text)
    assert.include(
      (await client.models.list()).data.map(({ id }) => id),
      model
    )
  })

  it("Together's chats, and lists models", async () => {
    const client = new Together({ apiKey, baseURL: `${url}/vendors/together/v1`, maxRetries: 0 })
    const model = "openai/gpt-oss-120b"
    const whole = await client.chat.completions.create({ model, messages })
    assert.strictEqual(whole.choices[0]?.message?.content, text)
    assert.include(
      (await client.models.list()).map(({ id }) => id),
      model
    )
  })
})
