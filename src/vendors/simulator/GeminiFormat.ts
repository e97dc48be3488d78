import type { Said } from "./UpstreamSimulator.ts"

/** vendors.md A2. */
export const geminiAnswer = (said: Said) => ({
  candidates: [
    {
      content: { role: "model", parts: [{ text: said.words.join(" ") }] },
      finishReason: "STOP",
      index: 0
    }
  ],
  usageMetadata: {
    promptTokenCount: said.inputTokens,
    candidatesTokenCount: said.words.length,
    totalTokenCount: said.inputTokens + said.words.length
  },
  modelVersion: said.model,
  responseId: said.seed.slice(0, 22)
})
