import { Effect, Predicate, Result } from "effect"
import type { Readable } from "node:stream"
import { dialectOfProvider } from "../catalog/UpstreamCatalog.ts"
import type { UpstreamCatalog } from "../catalog/UpstreamCatalog.ts"
import { at } from "../domain/json/Json.ts"
import { problem } from "../domain/Problem.ts"
import type { Problem } from "../domain/Problem.ts"
import type { Dialect, Provider, UsageDifferences } from "../domain/Provider.ts"
import { randomHex } from "../domain/RandomHex.ts"
import { atOnce, inHeavyTurn, inSlices } from "../domain/shares/Slices.ts"
import type { Sliced } from "../domain/shares/Slices.ts"
import { StreamRelay, unwatched } from "../vendors/upstream/StreamRelay.ts"
import type { StreamWatch } from "../vendors/upstream/StreamRelay.ts"
import { documentBytesMin } from "../vendors/upstream/UpstreamExchange.ts"
import type {
  SentUpload,
  UpstreamResponse,
  UpstreamRequest
} from "../vendors/upstream/UpstreamExchange.ts"
import { anthropicMessage, anthropicMessageEvents } from "./AnthropicFormat.ts"
import { parseRequest } from "./Completion.ts"
import type { Answer, ParsedRequest } from "./Completion.ts"
import {
  embeddingsBody,
  geminiEmbeddingsBody,
  hasTooManyInputs,
  hasTooManyRequests,
  inputsMax,
  moderationsBody,
  requestsMax
} from "./EmbeddingsFormat.ts"
import type { BodyPieces } from "./EmbeddingsFormat.ts"
import {
  asksForPicture,
  generateContentChunks,
  generateContentResponse,
  pictureResponse
} from "./GeminiFormat.ts"
import { modelsResponse } from "./ModelsFormat.ts"
import { chatCompletion, chatCompletionEvents } from "./OpenAiFormat.ts"
import type { UsagePlace } from "./OpenAiFormat.ts"
import { cohereRerank, documentsMax, documentsOf, jinaRerank } from "./RerankFormat.ts"
import { openAiResponse, openAiResponseEvents } from "./ResponsesFormat.ts"
import { UnsatisfiableSchema } from "./SchemaExample.ts"
import { speechEvents, speechFormats, speechOf } from "./SpeechFormat.ts"
import { callsFunction } from "./ToolCalls.ts"
import { hear, transcription, transcriptionEvents } from "./TranscriptionFormat.ts"
import type { Heard } from "./TranscriptionFormat.ts"

/**
 * Simulates passthrough calls in the vendors' formats, as a whole or as a stream. Equal requests get equal bytes.
 * Refuses requests that no vendor would accept, so that a small request cannot cost much. `answerOf` replaces the
 * simulator's answers. docs/reference/vendors.md#sandbox
 */
export const makeSimulator =
  (
    catalogNow: () => UpstreamCatalog,
    answerOf?: (request: UpstreamRequest) => Answer | undefined
  ) =>
  (provider: Provider, request: UpstreamRequest): Effect.Effect<UpstreamResponse, Problem> => {
    if (request.upload !== undefined) {
      return Effect.map(transcribe(request, request.upload), (it) => withRequestId("openai", it))
    }
    return Effect.suspend(() => {
      const catalog = catalogNow()
      const dialect = dialectOfProvider(catalog, provider)
      if (request.method === "GET") {
        const { status, value } = modelsResponse(catalog, provider, request.path)
        return Effect.succeed(withRequestId(dialect, json(value, status)))
      }
      const usage = catalog.provider(provider)?.usage
      return inSlices(() => responseOf(dialect, request, answerOf?.(request), usage)).pipe(
        Effect.catchDefect((defect) => {
          if (defect instanceof UnsatisfiableSchema) {
            return Effect.succeed(badRequest(dialect, defect.message))
          }
          // The stack overflowed, or a text would be too long
          return defect instanceof RangeError
            ? Effect.succeed(
                badRequest(dialect, "The body is nested too deeply, or asks for too much")
              )
            : Effect.die(defect)
        }),
        Effect.map((it) => withRequestId(dialect, it))
      )
    })
  }

const requestIdHeaders: Readonly<Record<Dialect, string | undefined>> = {
  openai: "x-request-id",
  anthropic: "request-id",
  gemini: undefined
}

/** The id of an error is also in its body in Anthropic's format. */
const errorRequestId = "req_simulated"

/** The vendor's id of the request, which its clients show. */
const withRequestId = (dialect: Dialect, response: UpstreamResponse): UpstreamResponse => {
  const name = requestIdHeaders[dialect]
  if (name === undefined) return response
  const id = response.status < 400 ? `req_${randomHex(32)}` : errorRequestId
  return { ...response, headers: { ...response.headers, [name]: id } }
}

function* responseOf(
  dialect: Dialect,
  request: UpstreamRequest,
  answer: Answer | undefined,
  usage?: UsageDifferences
): Sliced<UpstreamResponse> {
  const parsed = parseRequest(request, answer)
  const odd = lists.find((name) => isOdd(at(parsed.body, name)))
  if (odd !== undefined) return badRequest(dialect, `'${odd}' must be a list of objects`)
  switch (dialect) {
    case "anthropic":
      return anthropic(request, parsed)
    case "gemini":
      return yield* gemini(request, parsed, answer === undefined)
    case "openai":
      return yield* openAi(request, parsed, usage)
  }
}

/** The lists of objects in requests. */
const lists = ["messages", "contents", "requests"]

const isOdd = (list: unknown): boolean =>
  list !== undefined && !(Array.isArray(list) && list.every(Predicate.isObject))

/** Simulates a call that is not streamed, from its path and body. */
export const simulateCall = (
  dialect: Dialect,
  request: Pick<UpstreamRequest, "path" | "body">
): { readonly status: number; readonly body: Uint8Array } => {
  const whole = { ...unsent, ...request }
  const made = Result.try({
    try: () => atOnce(responseOf(dialect, whole, undefined)),
    catch: (error) => error
  })
  const refusal = badRequest(dialect, "The request cannot be simulated")
  const { body, status } = Result.getOrElse(made, () => refusal)
  return { status, body: body instanceof Uint8Array ? body : new Uint8Array() }
}

/** The members of a request other than its path and body. */
const unsent: Omit<UpstreamRequest, "path" | "body"> = {
  method: "POST",
  query: "",
  headers: [],
  model: "",
  user: "",
  key: "",
  route: {
    vendor: "openai",
    provider: "openai",
    method: "POST",
    path: "/",
    meter: { per: "nothing" }
  },
  watch: undefined
}

const badRequest = (dialect: Dialect, message: string): UpstreamResponse =>
  json(errorBody(dialect, message), 400)

function* openAi(
  request: UpstreamRequest,
  parsed: ParsedRequest,
  usage: UsageDifferences | undefined
): Sliced<UpstreamResponse> {
  const { body, completion } = parsed
  if (/\/(?:embeddings|moderations)$/u.test(request.path) && hasTooManyInputs(body)) {
    return badRequest("openai", `'input' must have at most ${inputsMax} items`)
  }
  if (request.path.endsWith("/embeddings")) {
    // Mistral's client requires an id
    const more = request.route.provider === "mistral" ? { id: parsed.completion.seed } : {}
    return yield* inPieces(request, embeddingsBody(parsed, more))
  }
  if (request.path.endsWith("/moderations")) return json(moderationsBody(parsed))
  if (request.path.endsWith("/speech")) return speech(request, parsed)
  if (request.path.endsWith("/rerank")) return rerank(request, parsed)
  if (request.path.endsWith("/responses/input_tokens")) {
    return json({ object: "response.input_tokens", input_tokens: completion.inputTokens })
  }
  if (request.path.endsWith("/responses")) {
    return parsed.stream
      ? stream(request, openAiResponseEvents(completion))
      : json(openAiResponse(completion))
  }
  const isFormer = callsFunction(body)
  return parsed.stream
    ? stream(request, chatCompletionEvents(completion, usagePlaceOf(body, usage), isFormer))
    : json(chatCompletion(completion, isFormer))
}

const usagePlaceOf = (body: unknown, usage: UsageDifferences | undefined): UsagePlace => {
  if (usage?.inStreams === "unasked") return "last"
  return at(body, "stream_options", "include_usage") === true ? "added" : undefined
}

/** A form that ends too early has a problem, which the client receives. */
const transcribe = (
  request: UpstreamRequest,
  upload: SentUpload
): Effect.Effect<UpstreamResponse, Problem> =>
  Effect.callback((resume) => {
    request.watch?.sent()
    const stop = hear(request, upload, (heard) =>
      resume(
        heard === undefined
          ? Effect.fail(upload.problem ?? cutOff)
          : Effect.sync(() => transcribed(request, heard))
      )
    )
    return Effect.sync(stop)
  })

const cutOff = problem(2002, "The body could not be read")

const transcribed = (request: UpstreamRequest, heard: Heard): UpstreamResponse => {
  if (!heard.hasFile) return badRequest("openai", "The form has no file")
  const body = transcription(heard, request.path.endsWith("/translations"))
  if (body === undefined) return badRequest("openai", `'${heard.format}' is not a response_format`)
  if (heard.isStream) return stream(request, transcriptionEvents(heard))
  return { status: 200, headers: { "content-type": body.mime }, body: Buffer.from(body.text) }
}

const speech = (request: UpstreamRequest, parsed: ParsedRequest): UpstreamResponse => {
  const sound = speechOf(parsed.body)
  if (sound === undefined) {
    return badRequest("openai", `The simulator offers only the formats ${speechFormats}`)
  }
  if (at(parsed.body, "stream_format") === "sse")
    return stream(request, speechEvents(parsed, sound))
  const { bytes, mime } = sound
  const chunks = Array.from({ length: Math.ceil(bytes.length / chunkBytes) }, (_, index) =>
    bytes.subarray(index * chunkBytes, (index + 1) * chunkBytes)
  )
  return stream(request, chunks, mime)
}

const rerank = ({ path }: UpstreamRequest, parsed: ParsedRequest): UpstreamResponse => {
  if (documentsOf(parsed.body).length > documentsMax) {
    return badRequest("openai", `'documents' must have at most ${documentsMax} items`)
  }
  return json(path.startsWith("/v2/") ? cohereRerank(parsed) : jinaRerank(parsed))
}

const anthropic = (
  request: UpstreamRequest,
  { body, completion, stream: isStream }: ParsedRequest
): UpstreamResponse => {
  if (request.path.endsWith("/count_tokens")) return json({ input_tokens: completion.inputTokens })
  const maxTokens = at(body, "max_tokens")
  if (!Number.isInteger(maxTokens)) {
    const fault = maxTokens === undefined ? "Field required" : "Input should be a valid integer"
    return badRequest("anthropic", `max_tokens: ${fault}`)
  }
  return isStream
    ? stream(request, anthropicMessageEvents(completion))
    : json(anthropicMessage(completion))
}

function* gemini(
  request: UpstreamRequest,
  parsed: ParsedRequest,
  mayDraw: boolean
): Sliced<UpstreamResponse> {
  const { body, completion, stream: isStream } = parsed
  if (request.path.endsWith(":countTokens")) return json({ totalTokens: completion.inputTokens })
  if (request.path.endsWith(":embedContent")) {
    return yield* inPieces(request, geminiEmbeddingsBody(parsed, false))
  }
  if (request.path.endsWith(":batchEmbedContents")) {
    return hasTooManyRequests(body)
      ? badRequest(
          "gemini",
          `* BatchEmbedContentsRequest.requests: at most ${requestsMax} requests can be in one batch\n`
        )
      : yield* inPieces(request, geminiEmbeddingsBody(parsed, true))
  }
  const picture = mayDraw && asksForPicture(body) ? pictureResponse(body, completion) : undefined
  if (!isStream) return json(picture ?? generateContentResponse(completion))
  const chunks = picture === undefined ? generateContentChunks(completion) : [picture]
  // Without `alt=sse`, Gemini streams one JSON array
  return /[?&]alt=sse(?:&|$)/u.test(request.query)
    ? stream(
        request,
        chunks.map((chunk) => `data: ${JSON.stringify(chunk)}\r\n\r\n`)
      )
    : json(chunks)
}

/** The body of a 400 in the vendor's format. */
const errorBody = (dialect: Dialect, message: string): unknown => {
  switch (dialect) {
    case "anthropic":
      return {
        type: "error",
        error: { type: "invalid_request_error", message },
        request_id: errorRequestId
      }
    case "gemini":
      return { error: { code: 400, message, status: "INVALID_ARGUMENT" } }
    case "openai":
      return { error: { message, type: "invalid_request_error", param: null, code: null } }
  }
}

const json = (value: unknown, status = 200): UpstreamResponse =>
  jsonOf(Buffer.from(JSON.stringify(value)), status)

const jsonOf = (body: Buffer | Readable, status = 200): UpstreamResponse => ({
  status,
  headers: { "content-type": "application/json" },
  body
})

/** Like a vendor's: a large body of a watched call is relayed as it is made. */
function* inPieces({ watch }: UpstreamRequest, pieces: BodyPieces): Sliced<UpstreamResponse> {
  const made: Array<Buffer> = []
  let bytes = 0
  // Not with `for`, which would end the generator at the return
  for (let next = pieces.next(); next.done !== true; next = pieces.next()) {
    made.push(next.value)
    bytes += next.value.length
    if (bytes > documentBytesMin && watch !== undefined) {
      return jsonOf(relayPieces(watch, Buffer.concat(made), pieces))
    }
    yield
  }
  return jsonOf(Buffer.concat(made))
}

/** Makes the next piece, in turn with other heavy work, when the client has read those before. */
const relayPieces = (watch: StreamWatch, first: Buffer, pieces: BodyPieces): Readable => {
  let isWaiting = false
  const makeNext = () => {
    if (isWaiting || relay.isOver) return
    isWaiting = true
    inHeavyTurn(() => {
      isWaiting = false
      if (relay.isOver) return
      const next = Result.try(() => pieces.next())
      if (Result.isFailure(next)) return relay.breakOff(new Error("The simulator failed"))
      const { done, value } = next.success
      if (done === true) relay.finish()
      else if (relay.receive(value)) makeNext()
    })
  }
  const relay = new StreamRelay(watch, { resume: makeNext, abort: () => {} })
  watch.document()
  const body = relay.open()
  if (relay.receive(first)) makeNext()
  return body
}

/** The pause between two events of a simulated stream. */
const eventMillis = 5

/** The size of an audio chunk: a third of a second. */
const chunkBytes = 16 * 1024

const stream = (
  request: UpstreamRequest,
  events: ReadonlyArray<string | Buffer>,
  type = "text/event-stream; charset=utf-8"
): UpstreamResponse => {
  const relay = new StreamRelay(request.watch ?? unwatched)
  const body = relay.open()
  const next = (index: number) => {
    if (relay.isOver) return
    const event = events[index] ?? ""
    relay.receive(typeof event === "string" ? Buffer.from(event) : event)
    if (index + 1 < events.length) setTimeout(next, eventMillis, index + 1)
    else relay.finish()
  }
  next(0)
  return { status: 200, headers: { "content-type": type }, body }
}
