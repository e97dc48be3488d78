import {
  chat,
  embed,
  generateImage,
  generateSpeech,
  generateTranscription,
  toolDefinition
} from "@tanstack/ai"
import { createAnthropicChat } from "@tanstack/ai-anthropic"
import { createGeminiChat } from "@tanstack/ai-gemini"
import {
  createOpenaiChat,
  createOpenaiChatCompletions,
  createOpenaiEmbedding,
  createOpenaiImage,
  createOpenaiSpeech,
  createOpenaiTranscription
} from "@tanstack/ai-openai"
import { assert, describe, it } from "vitest"
import { z } from "zod"
import { worlds } from "../support/worlds.ts"

const Trip = z.object({ city: z.string(), days: z.number() })

/** The recorded upstream neither calls tools nor speaks. */
const sandboxes = worlds().filter(({ name }) => name === "the sandbox")

describe.each(sandboxes)("TanStack AI at $name", ({ key, text, url }) => {
  const openai = { baseURL: `${url}/v1` }
  const google = { httpOptions: { baseUrl: `${url}/vendors/google` } }
  const messages = [{ role: "user" as const, content: "Where to?" }]
  const asked = [{ role: "user" as const, content: "Where to? [[sim:tool=look]]" }]

  describe.each([
    ["responses", () => createOpenaiChat("gpt-4o", key, openai)],
    ["chat completions", () => createOpenaiChatCompletions("gpt-4o", key, openai)],
    ["messages", () => createAnthropicChat("claude-sonnet-5", key, { baseURL: url })],
    ["contents", () => createGeminiChat("gemini-2.5-flash", key, google)]
  ] as const)("%s", (_, adapterOf) => {
    it("as a text, and as events that end with the usage", async () => {
      assert.strictEqual(await chat({ adapter: adapterOf(), messages, stream: false }), text)
      let words = ""
      let usage: unknown
      for await (const event of chat({ adapter: adapterOf(), messages })) {
        if (event.type === "TEXT_MESSAGE_CONTENT") words += event.delta
        if (event.type === "RUN_FINISHED") usage = event.usage
      }
      assert.strictEqual(words, text)
      assert.isAbove(Object(usage)["completionTokens"], 0)
    })

    it("runs a tool, and gives what fits a schema after it", async () => {
      const seen: Array<string> = []
      const look = toolDefinition({
        name: "look",
        description: "Looks at a city",
        inputSchema: z.object({ city: z.string() })
      }).server(({ city }) => {
        seen.push(city)
        return "sunny"
      })
      const trip = await chat({
        adapter: adapterOf(),
        messages: asked,
        tools: [look],
        outputSchema: Trip
      })
      assert.isTrue(Trip.safeParse(trip).success)
      assert.lengthOf(seen, 1)
    })
  })

  it("embeds, draws, speaks and names the speaker", async () => {
    const vectors = await embed({
      adapter: createOpenaiEmbedding("text-embedding-3-small", key, openai),
      input: ["a", "b"]
    })
    assert.lengthOf(vectors.embeddings, 2)
    const drawn = await generateImage({
      adapter: createOpenaiImage("gpt-image-1", key, openai),
      prompt: "A lighthouse"
    })
    assert.lengthOf(drawn.images, 1)
    const { audio } = await generateSpeech({
      adapter: createOpenaiSpeech("tts-1", key, openai),
      text: "Hello there",
      format: "wav"
    })
    const heard = await generateTranscription({
      adapter: createOpenaiTranscription("gpt-4o-transcribe-diarize", key, openai),
      audio: `data:audio/wav;base64,${audio}`
    })
    assert.deepEqual(
      heard.segments?.map(({ speaker }) => speaker),
      ["A"]
    )
  })

  it("a wrong key ends the run with the gateway's message", async () => {
    const adapter = createAnthropicChat("claude-sonnet-5", "sk-wrong", { baseURL: url })
    const ends = []
    for await (const event of chat({ adapter, messages, debug: false })) ends.push(event)
    assert.include(JSON.stringify(ends.at(-1)), "This API key is malformed")
  })
})
