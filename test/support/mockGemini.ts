import { events, json, mockVendor } from "./mockVendors.ts"
import type { Script } from "./mockVendors.ts"

/** 100 tokens of thoughts and 400 of text; 400 of the 1000 prompt tokens are cached. */
export const geminiUsage = {
  promptTokenCount: 1000,
  cachedContentTokenCount: 400,
  candidatesTokenCount: 400,
  thoughtsTokenCount: 100,
  totalTokenCount: 1500
}

const chunk = (part: object, finish: object, usageMetadata: object = geminiUsage) => ({
  candidates: [{ content: { role: "model", parts: [part] }, ...finish, index: 0 }],
  usageMetadata,
  modelVersion: "mock",
  responseId: "resp_mock"
})

export const geminiEvents = () => {
  const words = ["Hel", "lo", " there"]
  return words.map((text, index) => {
    const isLast = index === words.length - 1
    const so = { ...geminiUsage, candidatesTokenCount: isLast ? 400 : index + 1 }
    const event = chunk({ text }, isLast ? { finishReason: "STOP" } : {}, so)
    return `data: ${JSON.stringify(event)}\r\n\r\n`
  })
}

/** The default responses of the mock. docs/reference/vendors.md#gemini-contents */
export const geminiScript: Script = (request, response) => {
  if (request.method === "GET") {
    return json(response, 200, { models: [{ name: "models/gemini-2.5-flash" }] })
  }
  const body = JSON.parse(request.body)
  if (request.url.includes(":streamGenerateContent")) return events(response, geminiEvents())
  const call = { functionCall: { name: "f", args: { a: 1 } } }
  const part = body.tools === undefined ? { text: "Hello there" } : call
  return json(response, 200, chunk(part, { finishReason: "STOP" }))
}

export const mockGemini = () => mockVendor(geminiScript)
