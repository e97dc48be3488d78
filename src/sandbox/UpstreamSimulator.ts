import { Effect, Result } from "effect"
import type { UpstreamCatalog } from "../catalog/UpstreamCatalog.ts"
import { at } from "../domain/Json.ts"
import type { Provider } from "../domain/Provider.ts"
import type { UpstreamResponse, UpstreamRequest } from "../vendors/UpstreamExchange.ts"
import { RelayedStream } from "../vendors/UpstreamExchange.ts"
import { anthropicAnswer, anthropicEvents } from "./AnthropicFormat.ts"
import { hear } from "./ChatContent.ts"
import type { Heard } from "./ChatContent.ts"
import {
  embeddingsAnswer,
  hasTooManyInputs,
  inputsMax,
  moderationsAnswer
} from "./EmbeddingsFormat.ts"
import { geminiAnswer, geminiChunks } from "./GeminiFormat.ts"
import { modelsAnswer } from "./ModelsFormat.ts"
import { chatAnswer, chatEvents } from "./OpenAiFormat.ts"
import { refusalOf } from "./Refusal.ts"
import { responsesAnswer, responsesEvents } from "./ResponsesFormat.ts"

/**
 * Answers as the vendor would: chat, responses, messages, contents, embeddings, tools and lists of
 * models, whole or as a stream. Deterministic: the same request gives the same bytes. Contract 7.
 * What no vendor would answer is refused: a few bytes of a request must not cost much.
 */
export const makeSimulator =
  (catalog: UpstreamCatalog) =>
  (provider: Provider, request: UpstreamRequest): Effect.Effect<UpstreamResponse> =>
    Effect.sync(() => {
      if (request.method === "GET") {
        const { status, value } = modelsAnswer(catalog, provider, request.path)
        return json(value, status)
      }
      const answer = Result.try({
        try: () => answerOf(provider, request),
        catch: (error) => error
      })
      if (Result.isSuccess(answer)) return answer.success
      // The stack ran out, or a text would be too long
      if (answer.failure instanceof RangeError) {
        return refused(provider, "The body is nested too deeply, or asks for too much")
      }
      throw answer.failure
    })

const answerOf = (provider: Provider, request: UpstreamRequest): UpstreamResponse => {
  const heard = hear(request)
  switch (provider) {
    case "anthropic":
      return anthropic(request, heard)
    case "gemini":
      return gemini(request, heard)
    default:
      return openAi(request, heard)
  }
}

const refused = (provider: Provider, message: string): UpstreamResponse =>
  json(refusalOf(provider, message), 400)

const openAi = (request: UpstreamRequest, heard: Heard): UpstreamResponse => {
  const { body, said } = heard
  if (/\/(?:embeddings|moderations)$/u.test(request.path) && hasTooManyInputs(body)) {
    return refused("openai", `'input' must have at most ${inputsMax} items`)
  }
  if (request.path.endsWith("/embeddings")) return json(embeddingsAnswer(heard))
  if (request.path.endsWith("/moderations")) return json(moderationsAnswer(heard))
  if (request.path.endsWith("/responses")) {
    return heard.stream ? stream(request, responsesEvents(said)) : json(responsesAnswer(said))
  }
  return heard.stream
    ? stream(request, chatEvents(said, at(body, "stream_options", "include_usage") === true))
    : json(chatAnswer(said))
}

const anthropic = (
  request: UpstreamRequest,
  { said, stream: isStream }: Heard
): UpstreamResponse => {
  if (request.path.endsWith("/count_tokens")) return json({ input_tokens: said.inputTokens })
  return isStream ? stream(request, anthropicEvents(said)) : json(anthropicAnswer(said))
}

const gemini = (request: UpstreamRequest, { said, stream: isStream }: Heard): UpstreamResponse => {
  if (request.path.endsWith(":countTokens")) return json({ totalTokens: said.inputTokens })
  if (!isStream) return json(geminiAnswer(said))
  const chunks = geminiChunks(said)
  // Gemini streams one JSON array to those who do not ask for events
  return /[?&]alt=sse(?:&|$)/u.test(request.query)
    ? stream(
        request,
        chunks.map((chunk) => `data: ${JSON.stringify(chunk)}\r\n\r\n`)
      )
    : json(chunks)
}

const json = (value: unknown, status = 200): UpstreamResponse => ({
  status,
  headers: { "content-type": "application/json" },
  body: Buffer.from(JSON.stringify(value))
})

/** Time between two events of a simulated stream, so that it is seen to flow, in milliseconds. */
const eventMillis = 5

const stream = (request: UpstreamRequest, events: ReadonlyArray<string>): UpstreamResponse => {
  const watch = request.watch ?? { push: (it) => it, flush: () => Buffer.alloc(0), ended: () => {} }
  const body = new RelayedStream(watch)
  const next = (index: number) => {
    if (body.destroyed) return
    body.receive(Buffer.from(events[index] ?? ""))
    if (index + 1 < events.length) setTimeout(next, eventMillis, index + 1)
    else body.finish()
  }
  next(0)
  return { status: 200, headers: { "content-type": "text/event-stream; charset=utf-8" }, body }
}
