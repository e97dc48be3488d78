import { createHash } from "node:crypto"
import type { Said } from "./UpstreamSimulator.ts"

/** A fixed time, so that the same request gives the same bytes. In Unix seconds. */
const createdSeconds = 1_735_689_600

const usageOf = ({ inputTokens, words }: Said) => ({
  prompt_tokens: inputTokens,
  completion_tokens: words.length,
  total_tokens: inputTokens + words.length,
  prompt_tokens_details: { cached_tokens: 0 },
  completion_tokens_details: { reasoning_tokens: 0 }
})

const idOf = ({ seed }: Said): string => `chatcmpl-${seed.slice(0, 29)}`

/** vendors.md A3. */
export const chatAnswer = (said: Said) => ({
  id: idOf(said),
  object: "chat.completion",
  created: createdSeconds,
  model: said.model,
  choices: [
    {
      index: 0,
      message: { role: "assistant", content: said.words.join(" "), refusal: null },
      logprobs: null,
      finish_reason: "stop"
    }
  ],
  usage: usageOf(said),
  system_fingerprint: "fp_simulated"
})

/** The same answer as server-sent events, a word each. */
export const chatEvents = (said: Said, withUsage: boolean): ReadonlyArray<string> => {
  const head = {
    id: idOf(said),
    object: "chat.completion.chunk",
    created: createdSeconds,
    model: said.model
  }
  const usage = withUsage ? { usage: null } : {}
  const chunk = (delta: unknown, finish: string | null) =>
    event({ ...head, choices: [{ index: 0, delta, finish_reason: finish }], ...usage })
  return [
    chunk({ role: "assistant", content: "" }, null),
    ...said.words.map((word, index) => chunk({ content: index === 0 ? word : ` ${word}` }, null)),
    chunk({}, "stop"),
    ...(withUsage ? [event({ ...head, choices: [], usage: usageOf(said) })] : []),
    "data: [DONE]\n\n"
  ]
}

const event = (value: unknown): string => `data: ${JSON.stringify(value)}\n\n`

const dimensionsDefault = 1536
const dimensionsMax = 4096

/** Unit vectors, from a hash of each input. */
export const embeddingsAnswer = (said: Said, input: unknown, dimensions = dimensionsDefault) => ({
  object: "list",
  data: (Array.isArray(input) ? input : [input]).map((it: unknown, index) => ({
    object: "embedding",
    index,
    embedding: vector(JSON.stringify(it) ?? "", Math.min(dimensions, dimensionsMax))
  })),
  model: said.model,
  usage: { prompt_tokens: said.inputTokens, total_tokens: said.inputTokens }
})

const vector = (text: string, dimensions: number): ReadonlyArray<number> => {
  const seed = createHash("sha512").update(text).digest()
  const values = Array.from(
    { length: Math.max(1, dimensions) },
    (_, index) => (seed[index % seed.length] ?? 0) - 127.5 + (index % 7)
  )
  const length = Math.hypot(...values)
  return values.map((value) => Number((value / length).toFixed(8)))
}

/** The answer of `/v1/responses`. */
export const responsesAnswer = (said: Said) => ({
  id: `resp_${said.seed.slice(0, 32)}`,
  object: "response",
  created_at: createdSeconds,
  status: "completed",
  error: null,
  model: said.model,
  output: [
    {
      id: `msg_${said.seed.slice(0, 32)}`,
      type: "message",
      status: "completed",
      role: "assistant",
      content: [{ type: "output_text", text: said.words.join(" "), annotations: [] }]
    }
  ],
  usage: {
    input_tokens: said.inputTokens,
    input_tokens_details: { cached_tokens: 0 },
    output_tokens: said.words.length,
    output_tokens_details: { reasoning_tokens: 0 },
    total_tokens: said.inputTokens + said.words.length
  }
})
