import { Schema } from "effect"
import type { Dialect } from "../domain/Provider.ts"
import { ModelKind, ModelPrice } from "./ModelPrice.ts"
import { ModelId, PathSegment } from "./PathSegment.ts"
import { Amount } from "./Price.ts"
import { priceRowFields } from "./PriceRow.ts"

/** Where a response reports its usage and a request sets its token limit. */
export const UsageProtocol = Schema.Literals([
  "openai-chat",
  "openai-responses",
  "openai-embeddings",
  "openai-speech",
  "openai-transcription",
  "rerank",
  "anthropic-messages",
  "gemini-generate",
  "gemini-embeddings"
])
export type UsageProtocol = typeof UsageProtocol.Type

/** How a call of the route is charged. */
const Meter = Schema.Union([
  Schema.Struct({ per: Schema.Literal("nothing") }),
  Schema.Struct({ per: Schema.Literal("call"), amount: Amount }),
  Schema.Struct({ per: Schema.Literal("tokens"), protocol: UsageProtocol })
])

/** One upstream route that clients may call. All other routes are refused with 2006. ADR 0073. */
export const OpenRoute = Schema.Struct({
  /** Path segment after `/vendors/`. */
  vendor: PathSegment,
  /** The provider whose account serves it. */
  provider: PathSegment,
  method: Schema.Literals(["GET", "POST", "DELETE"]),
  /** The upstream path; `{model}` is one segment, or the part of a segment before a colon. */
  path: Schema.String.check(
    Schema.isPattern(/^(?:\/(?:[A-Za-z0-9._-]+|\{model\})(?::[A-Za-z]+)?)+$/u, {
      expected: "a path of letters, digits, dots, underscores, hyphens and {model}"
    })
  ),
  meter: Meter
}).annotate({ identifier: "OpenRoute" })
export type OpenRoute = typeof OpenRoute.Type

/** A called model, charged by tokens or by another unit. */
export const TokenModel = Schema.Struct({
  vendor: PathSegment,
  /** The upstream's model id. The id with a date appended names the same model. */
  model: ModelId,
  /** If absent, the model writes text, or embeds it if `outputTokensMax` is 0. */
  kind: Schema.optionalKey(ModelKind),
  price: ModelPrice,
  ...priceRowFields(ModelPrice),
  /**
   * `false` if the model reasons only when a request asks for it, so that its stream shows all its usage. If absent,
   * taken from the built-in model of this name, else `true`. docs/reference/passthrough.md#streams-left-by-their-client
   */
  reasons: Schema.optionalKey(Schema.Boolean),
  /** The longest response in tokens. It is held for if the request sets no limit. */
  outputTokensMax: Schema.Int.check(Schema.isGreaterThanOrEqualTo(0)),
  /** The longest prompt, in tokens or in the unit of the price. It limits the hold of a long request. */
  inputTokensMax: Schema.Int.check(Schema.isGreaterThanOrEqualTo(1))
}).annotate({ identifier: "TokenModel" })
export type TokenModel = typeof TokenModel.Type

const free = { per: "nothing" } as const
const tokens = (protocol: UsageProtocol) => ({ per: "tokens", protocol }) as const
const openai = { vendor: "openai", provider: "openai" } as const
const anthropic = { vendor: "anthropic", provider: "anthropic" } as const
const google = { vendor: "google", provider: "gemini" } as const

const googleRoutes = (version: string): ReadonlyArray<OpenRoute> => {
  const model = `${version}/models/{model}`
  const generate = tokens("gemini-generate")
  const embed = tokens("gemini-embeddings")
  return [
    { ...google, method: "POST", path: `${model}:generateContent`, meter: generate },
    { ...google, method: "POST", path: `${model}:streamGenerateContent`, meter: generate },
    { ...google, method: "POST", path: `${model}:embedContent`, meter: embed },
    { ...google, method: "POST", path: `${model}:batchEmbedContents`, meter: embed },
    { ...google, method: "POST", path: `${model}:countTokens`, meter: free },
    { ...google, method: "GET", path: `${version}/models`, meter: free },
    { ...google, method: "GET", path: model, meter: free }
  ]
}

/**
 * Excludes routes that read or change what is stored in the upstream account (files, batches, stored responses),
 * because all users share that account. ADR 0073.
 */
export const builtInRoutes: ReadonlyArray<OpenRoute> = [
  { ...openai, method: "POST", path: "/v1/chat/completions", meter: tokens("openai-chat") },
  { ...openai, method: "POST", path: "/v1/responses", meter: tokens("openai-responses") },
  { ...openai, method: "POST", path: "/v1/responses/input_tokens", meter: free },
  { ...openai, method: "POST", path: "/v1/embeddings", meter: tokens("openai-embeddings") },
  { ...openai, method: "POST", path: "/v1/audio/speech", meter: tokens("openai-speech") },
  {
    ...openai,
    method: "POST",
    path: "/v1/audio/transcriptions",
    meter: tokens("openai-transcription")
  },
  {
    ...openai,
    method: "POST",
    path: "/v1/audio/translations",
    meter: tokens("openai-transcription")
  },
  { ...openai, method: "POST", path: "/v1/moderations", meter: free },
  { ...openai, method: "GET", path: "/v1/models", meter: free },
  { ...openai, method: "GET", path: "/v1/models/{model}", meter: free },
  { ...anthropic, method: "POST", path: "/v1/messages", meter: tokens("anthropic-messages") },
  { ...anthropic, method: "POST", path: "/v1/messages/count_tokens", meter: free },
  { ...anthropic, method: "GET", path: "/v1/models", meter: free },
  { ...anthropic, method: "GET", path: "/v1/models/{model}", meter: free },
  // Google's own clients call v1beta, newer ones v1
  ...googleRoutes("/v1beta"),
  ...googleRoutes("/v1")
]

const kinds: Readonly<Partial<Record<UsageProtocol, ModelKind>>> = {
  "openai-speech": "speech",
  "openai-transcription": "transcription",
  rerank: "rerank"
}

/**
 * Whether the protocol serves models of this kind. Text models and embedding models count as one kind here, so neither
 * is refused at the other's routes.
 */
export const isOfKind = (protocol: UsageProtocol, { kind }: TokenModel): boolean =>
  kinds[protocol] === kind

/** Whether a model is made for this route. */
export const serves = ({ meter, vendor }: OpenRoute, model: TokenModel): boolean =>
  vendor === model.vendor &&
  meter.per === "tokens" &&
  isOfKind(meter.protocol, model) &&
  (model.kind !== undefined ||
    meter.protocol.endsWith("-embeddings") === (model.outputTokensMax === 0))

const withoutVersion = (path: string): string => path.replace(/^\/v\d[a-z0-9]*(?=\/)/u, "")

/** The name of a route without its API version: `POST /chat/completions`. */
export const unversionedName = ({ method, path }: OpenRoute): string =>
  `${method} ${withoutVersion(path)}`

/** Whether bodies are requests for responses of OpenAI: to make them, or to count their tokens. */
export const takesResponse = ({ meter, path }: OpenRoute): boolean =>
  meter.per === "tokens"
    ? meter.protocol === "openai-responses"
    : path.endsWith("/responses/input_tokens")

/** Routes of a dialect that its own vendor does not have, but other vendors do. */
const routesOfOthers: ReadonlyArray<OpenRoute> = [
  { ...openai, method: "POST", path: "/v1/rerank", meter: tokens("rerank") }
]

/** The routes that a vendor of a dialect may have. */
export const dialectRoutes = (dialect: Dialect): ReadonlyArray<OpenRoute> =>
  [...builtInRoutes, ...routesOfOthers].filter(({ provider }) => provider === dialect)

/** The dialect's route for a path with any version segment, if there is one. */
export const dialectRoute = (dialect: Dialect, path: string): OpenRoute | undefined =>
  dialectRoutes(dialect).find((route) => withoutVersion(route.path) === withoutVersion(path))
