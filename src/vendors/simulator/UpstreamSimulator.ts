import { Effect, Option, Schema } from "effect"
import { createHash } from "node:crypto"
import type { Provider } from "../../domain/Provider.ts"
import type { UpstreamRequest } from "../Upstream.ts"
import { RelayedStream } from "../UpstreamExchange.ts"
import type { UpstreamAnswer } from "../UpstreamExchange.ts"
import { anthropicAnswer, anthropicEvents } from "./AnthropicFormat.ts"
import { geminiAnswer } from "./GeminiFormat.ts"
import { chatAnswer, chatEvents, embeddingsAnswer, responsesAnswer } from "./OpenAiFormat.ts"
import { modelsAnswer } from "./ModelsFormat.ts"

/** What the simulator says, the same for the same request. */
export interface Said {
  /** Hex digits that ids are made of. */
  readonly seed: string
  readonly model: string
  readonly words: ReadonlyArray<string>
  readonly inputTokens: number
}

const decodeJson = Schema.decodeUnknownOption(Schema.fromJsonString(Schema.Unknown))
const Body = Schema.Struct({
  model: Schema.optionalKey(Schema.String),
  stream: Schema.optionalKey(Schema.NullOr(Schema.Boolean)),
  input: Schema.optionalKey(Schema.Unknown),
  dimensions: Schema.optionalKey(Schema.Int)
})
const decodeBody = Schema.decodeUnknownOption(Body)

const vocabulary = [
  "This",
  "answer",
  "comes",
  "from",
  "the",
  "built-in",
  "simulator:",
  "set",
  "a",
  "vendor",
  "key",
  "to",
  "reach",
  "the",
  "real",
  "model."
]

/**
 * Answers as the vendor would: chat, messages, embeddings and lists of models, whole or as a stream.
 * Deterministic: the same request gives the same bytes. Contract 7.
 */
export const simulateUpstream = (
  provider: Provider,
  request: UpstreamRequest
): Effect.Effect<UpstreamAnswer> => Effect.sync(() => answer(provider, request))

const answer = (provider: Provider, request: UpstreamRequest): UpstreamAnswer => {
  if (request.method === "GET") return json(modelsAnswer(provider, request.path))
  const text = Buffer.from(request.body).toString("utf8")
  const value = Option.getOrUndefined(decodeJson(text))
  const body = Option.getOrElse(decodeBody(value), (): typeof Body.Type => ({}))
  const seed = createHash("sha256").update(request.path).update(text).digest("hex")
  const pathModel = /\/models\/([^/:]+):/u.exec(request.path)?.[1]
  const said: Said = {
    seed,
    model: body.model ?? pathModel ?? "simulated",
    words: vocabulary,
    inputTokens: Math.max(1, Math.ceil(request.body.length / 4))
  }
  if (request.path.endsWith("/embeddings")) {
    return json(embeddingsAnswer(said, body.input, body.dimensions))
  }
  if (request.path.endsWith("/moderations")) {
    return json({
      id: `modr-${seed.slice(0, 24)}`,
      model: said.model,
      results: [{ flagged: false }]
    })
  }
  if (/count_?[tT]okens$/u.test(request.path)) {
    return json({ input_tokens: said.inputTokens, totalTokens: said.inputTokens })
  }
  if (provider === "anthropic") {
    return body.stream === true
      ? stream(request, anthropicEvents(said))
      : json(anthropicAnswer(said))
  }
  if (provider === "gemini") {
    return request.path.endsWith(":streamGenerateContent")
      ? stream(request, [`data: ${JSON.stringify(geminiAnswer(said))}\n\n`])
      : json(geminiAnswer(said))
  }
  if (request.path.endsWith("/responses")) return json(responsesAnswer(said))
  return body.stream === true
    ? stream(request, chatEvents(said, text.includes('"include_usage":true')))
    : json(chatAnswer(said))
}

const json = (value: unknown): UpstreamAnswer => ({
  status: 200,
  headers: { "content-type": "application/json" },
  body: Buffer.from(JSON.stringify(value))
})

/** Time between two events of a simulated stream, so that it is seen to flow, in milliseconds. */
const eventMillis = 5

const stream = (request: UpstreamRequest, events: ReadonlyArray<string>): UpstreamAnswer => {
  const watch = request.watch ?? { push: (it) => it, flush: () => Buffer.alloc(0), ended: () => {} }
  const body = new RelayedStream(watch)
  const next = (index: number) => {
    const event = events[index]
    if (body.destroyed) return
    if (event === undefined) return body.finish()
    body.receive(Buffer.from(event))
    setTimeout(next, eventMillis, index + 1)
  }
  next(0)
  return { status: 200, headers: { "content-type": "text/event-stream; charset=utf-8" }, body }
}
