import { Array as Arr, Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import type { OpenRoute, UsageProtocol } from "../catalog/OpenRoutes.ts"
import { formatExact } from "../domain/Credits.ts"
import { InferenceKey } from "./Access.ts"
import { documented } from "./Documented.ts"
import { endingHeaders, modelHeaders, requestHeaders, withHeaders } from "./Headers.ts"
import { FormFile } from "./ImagesApi.ts"
import { problems } from "./Problems.ts"

/** The aliases of paths, with their operation ids and vendors. docs/reference/passthrough.md#aliases */
const aliases: ReadonlyMap<string, { readonly vendor: string; readonly name: string }> = new Map([
  ["/v1/chat/completions", { vendor: "openai", name: "createChatCompletion" }],
  ["/v1/responses", { vendor: "openai", name: "createResponse" }],
  ["/v1/responses/input_tokens", { vendor: "openai", name: "countResponseTokens" }],
  ["/v1/embeddings", { vendor: "openai", name: "createEmbedding" }],
  ["/v1/audio/speech", { vendor: "openai", name: "createSpeech" }],
  ["/v1/audio/transcriptions", { vendor: "openai", name: "createTranscription" }],
  ["/v1/audio/translations", { vendor: "openai", name: "createTranslation" }],
  ["/v1/moderations", { vendor: "openai", name: "createModeration" }],
  ["/v1/rerank", { vendor: "jina", name: "createRerank" }],
  ["/v1/messages", { vendor: "anthropic", name: "createMessage" }],
  ["/v1/messages/count_tokens", { vendor: "anthropic", name: "countMessageTokens" }],
  ["/v1/models", { vendor: "openai", name: "listUpstreamModels" }],
  ["/v1/models/{model}", { vendor: "openai", name: "getUpstreamModel" }]
])

const open = Schema.Record(Schema.String, Schema.Unknown)
const limit = Schema.optionalKey(Schema.NullOr(Schema.Int.check(Schema.isGreaterThanOrEqualTo(1))))
const list = Schema.optionalKey(Schema.Array(open))
const stream = Schema.optionalKey(Schema.NullOr(Schema.Boolean))
const hello = { role: "user", parts: [{ text: "Hello" }] }

/** The body fields that the gateway reads, with an example. All other fields go to the vendor unread. */
const bodies: Readonly<
  Record<UsageProtocol, { readonly fields: Schema.Struct.Fields; readonly example: object }>
> = {
  "openai-chat": {
    fields: { messages: list, stream },
    example: { model: "gpt-4o-mini", messages: [{ role: "user", content: "Hello" }] }
  },
  "openai-responses": { fields: { stream }, example: { model: "gpt-4o-mini", input: "Hello" } },
  "openai-embeddings": {
    fields: {},
    example: { model: "text-embedding-3-small", input: ["Hello"] }
  },
  "openai-speech": {
    fields: { input: Schema.String, stream_format: Schema.optionalKey(Schema.String) },
    example: { model: "gpt-4o-mini-tts", input: "Hello", voice: "alloy", response_format: "wav" }
  },
  "openai-transcription": {
    fields: { file: FormFile },
    example: { model: "whisper-1", file: "the bytes of the file" }
  },
  rerank: {
    fields: {
      query: Schema.optionalKey(Schema.Unknown),
      documents: Schema.Array(Schema.Unknown).check(Schema.isMinLength(1))
    },
    example: {
      model: "jina-reranker-v3",
      query: "Which one is about light?",
      documents: ["A lamp gives light.", "A stone is heavy."]
    }
  },
  "anthropic-messages": {
    fields: { messages: list, max_tokens: limit, stream },
    example: {
      model: "claude-haiku-4-5",
      max_tokens: 100,
      messages: [{ role: "user", content: "Hello" }]
    }
  },
  "gemini-generate": { fields: { contents: list }, example: { contents: [hello] } },
  "gemini-embeddings": {
    fields: { content: Schema.optionalKey(open), requests: list },
    example: { content: { parts: [{ text: "Hello" }] } }
  }
}

const knownOf = ({ meter }: OpenRoute) =>
  meter.per === "tokens" ? bodies[meter.protocol] : undefined

/** The schema of the body fields that the gateway reads. */
export const vendorBodyOf = (route: OpenRoute) => {
  const known = knownOf(route)
  const named =
    known === undefined || route.path.includes("{model}") ? {} : { model: Schema.NonEmptyString }
  return Schema.StructWithRest(Schema.Struct({ ...named, ...known?.fields }), [open])
}

/** A form for a file, otherwise JSON, of which the gateway reads nothing if the route is free. */
const payloadOf = (route: OpenRoute) => {
  const { meter } = route
  if (meter.per === "nothing") return Schema.Unknown
  return meter.per === "tokens" && meter.protocol === "openai-transcription"
    ? vendorBodyOf(route).pipe(HttpApiSchema.asMultipart())
    : vendorBodyOf(route)
}

const paid = ({ meter }: OpenRoute): string => {
  switch (meter.per) {
    case "nothing":
      return "Free."
    case "call":
      return `${formatExact(meter.amount)} credits a call.`
    case "tokens":
      return "Charged by usage: the most that it can cost is held before the call, and its cost is settled afterwards."
  }
}

const Sound = Schema.Uint8Array.pipe(HttpApiSchema.asUint8Array({ contentType: "audio/*" }))

const VendorModel = Schema.String.check(Schema.isPattern(/^[A-Za-z0-9._:@-]{1,128}$/u)).annotate({
  description: "The vendor's id of the model"
})

const endpointOf = (route: OpenRoute, path: string, name: string) => {
  const { meter, method, vendor } = route
  const isPost = method === "POST"
  const isMetered = meter.per !== "nothing"
  const protocol = meter.per === "tokens" ? meter.protocol : undefined
  const streams =
    protocol !== undefined && !protocol.endsWith("-embeddings") && protocol !== "rerank"
  const headers = [
    ...(meter.per === "tokens" ? [...modelHeaders, ...endingHeaders] : []),
    ...(isMetered
      ? (["X-Service-Cost", "X-Service-Call-Id", "X-Service-Budget-Remaining"] as const)
      : [])
  ]
  const statuses = [401, 403, 404, 405, 429, 431, 500, 502, 503, 504].concat(
    isPost ? [400, 408, 413, 415] : 426,
    isMetered ? 402 : []
  )
  return HttpApiEndpoint.make(method)(name, `/${path.slice(1).replace("{model}", ":model")}`, {
    ...(path.includes("{model}") ? { params: { model: VendorModel } } : {}),
    headers: {
      ...(path.startsWith("/v1/models")
        ? { "Anthropic-Version": requestHeaders["Anthropic-Version"] }
        : {}),
      ...(isMetered ? { "X-Service-Max-Cost": requestHeaders["X-Service-Max-Cost"] } : {})
    },
    ...(isPost ? { payload: payloadOf(route) } : {}),
    success: [
      withHeaders(protocol === "openai-speech" ? Sound : open, headers),
      ...(streams
        ? [
            Schema.String.annotate({ description: "The vendor's own events" }).pipe(
              HttpApiSchema.asText({ contentType: "text/event-stream" })
            )
          ]
        : [])
    ],
    error: problems(...statuses)
  }).annotateMerge(
    documented({
      summary: `${method} ${route.path.replace(/^\/v\d\w*/u, "")} of ${vendor}`,
      description: `As ${vendor} has it: body, response and errors are the vendor's own. ${paid(route)}`,
      isRelayed: true,
      example: isPost ? (knownOf(route)?.example ?? {}) : undefined,
      responses: { 200: { description: "The vendor's own response" } }
    })
  )
}

const nameOf = ({ method, path, vendor }: OpenRoute): string =>
  `${method.toLowerCase()}_${vendor}${path}`.replaceAll(/[^A-Za-z0-9]+/gu, "_").replace(/_$/u, "")

/** One group per vendor whose routes the catalog opens. docs/reference/passthrough.md#paths, ADR 0073 */
export const vendorGroups = (routes: ReadonlyArray<OpenRoute>) =>
  Object.entries(Arr.groupBy(routes, ({ vendor }) => vendor)).map(([vendor, own]) =>
    HttpApiGroup.make(`Routes of ${vendor}`, { topLevel: true })
      .add(...Arr.map(own, (it) => endpointOf(it, `/vendors/${vendor}${it.path}`, nameOf(it))))
      .middleware(InferenceKey)
      .annotateMerge(
        OpenApi.annotations({
          description: "The vendor's own routes, for its unchanged clients"
        })
      )
  )

/** The same routes at the paths where clients of OpenAI and Anthropic expect them: one group, or none. */
export const aliasGroups = (routes: ReadonlyArray<OpenRoute>) => {
  const endpoints = routes.flatMap((route) => {
    const alias = aliases.get(route.path)
    return alias?.vendor === route.vendor ? [endpointOf(route, route.path, alias.name)] : []
  })
  return Arr.isArrayNonEmpty(endpoints)
    ? [
        HttpApiGroup.make("aliases", { topLevel: true })
          .add(...endpoints)
          .middleware(InferenceKey)
      ]
    : []
}
