import { GoogleGenAI, Type } from "@google/genai"
import type { CallableTool } from "@google/genai"
import { assert, describe, it } from "vitest"
import { worlds } from "../support/worlds.ts"

const model = "gemini-2.5-flash"
const contents = "Where to?"
/** The sandbox calls the tool that the prompt names. */
const toolContents = `${contents} [[sim:tool=weather]]`

describe.each(worlds())("the @google/genai package at $name", ({ key, text, url }) => {
  describe.each(["v1", "v1beta"])("by %s", (apiVersion) => {
    const { models } = new GoogleGenAI({
      apiKey: key,
      apiVersion,
      httpOptions: { baseUrl: `${url}/vendors/google` }
    })

    it("generates contents, whole and as a stream", async () => {
      const whole = await models.generateContent({ model, contents })
      assert.strictEqual(whole.text, text)
      assert.isAbove(whole.usageMetadata?.totalTokenCount ?? 0, 0)
      let words = ""
      for await (const chunk of await models.generateContentStream({ model, contents })) {
        words += chunk.text ?? ""
      }
      assert.strictEqual(words, text)
    })

    it("calls a function until the answer is text", async () => {
      const called: Array<string | undefined> = []
      const weather: CallableTool = {
        tool: async () => ({
          functionDeclarations: [
            {
              name: "weather",
              parameters: {
                type: Type.OBJECT,
                properties: { city: { type: Type.STRING } },
                required: ["city"]
              }
            }
          ]
        }),
        callTool: async (calls) => {
          called.push(...calls.map(({ name }) => name))
          return calls.map(({ id, name }) => ({
            functionResponse: {
              ...(id === undefined ? {} : { id }),
              name: name ?? "",
              response: { output: "sunny" }
            }
          }))
        }
      }
      const made = await models.generateContent({
        model,
        contents: toolContents,
        config: { tools: [weather] }
      })
      assert.strictEqual(made.text, text)
      assert.deepEqual(called, ["weather"])
    })

    it("counts tokens", async () => {
      assert.isAbove((await models.countTokens({ model, contents })).totalTokens ?? 0, 0)
    })
  })
})
