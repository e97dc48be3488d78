import { Context, Metric } from "effect"
import { at } from "../domain/json/Json.ts"
import type { UsageDifferences } from "../domain/Provider.ts"
import type { TokenModel, UsageProtocol } from "./OpenRoutes.ts"
import type { TokenUsage, Units } from "./Price.ts"
import { mergeToolUses, toolUsesOf } from "./ToolUses.ts"
import type { ToolUses } from "./ToolUses.ts"

/** A number of tokens: 0 if absent, `NaN` if it is not a count. */
const count = (value: unknown, ...path: ReadonlyArray<string>): number => {
  const found = at(value, ...path) ?? 0
  return typeof found === "number" && Number.isSafeInteger(found) && found >= 0 ? found : NaN
}

/** A call with the vendor's tools may read its prompt several times and request many choices. */
const readingsMax = 16
const choicesMax = 128

/**
 * Whether figures are plausible: not negative, not all zero, and within the model's limits. A figure that is not a
 * count stays `NaN` when figures are merged. docs/reference/passthrough.md#usage
 */
export const isCredible = (usage: TokenUsage, model: TokenModel): boolean =>
  usage.inputTokens + usage.outputTokens + unitsIn(usage) > 0 &&
  unitsIn(usage) <= readingsMax * model.inputTokensMax &&
  usage.inputTokens <= readingsMax * model.inputTokensMax &&
  usage.outputTokens <= choicesMax * model.outputTokensMax &&
  !Number.isNaN(sumOf(usage))

const usageFaults = Metric.counter("gateway_upstream_usage_faults_total", {
  description: "Metered calls whose usage figures were negative, no counts or beyond the model",
  incremental: true
})

/** The figures that the vendor's account reported, if they are credible. Others are counted as its fault. */
export const credibleUsage = (
  reported: TokenUsage | undefined,
  model: TokenModel,
  account: string
): TokenUsage | undefined => {
  if (reported === undefined || isCredible(reported, model)) return reported
  Metric.withAttributes(usageFaults, { account }).updateUnsafe(1, Context.empty())
  return undefined
}

/** Bytes of text per token, for upstreams that report no figures: the vendors' usual estimate. */
export const bytesPerToken = 4

const unitsIn = ({ characters = 0, searches = 0, seconds = 0 }: TokenUsage): number =>
  characters + searches + seconds

const sumOf = (usage: TokenUsage): number =>
  usage.inputTokens +
  usage.outputTokens +
  (usage.cachedInputTokens ?? 0) +
  (usage.cacheWriteTokens ?? 0) +
  (usage.cacheWriteLongTokens ?? 0) +
  (usage.reasoningTokens ?? 0) +
  (usage.audioInputTokens ?? 0) +
  (usage.imageOutputTokens ?? 0) +
  unitsIn(usage)

const isObject = (value: unknown): boolean => typeof value === "object" && value !== null

/**
 * The upstream's usage figures in a response or in one event of a stream; `undefined` when there are
 * none. docs/reference/passthrough.md#usage
 */
export const usageOf = (
  protocol: UsageProtocol,
  value: unknown,
  differences?: UsageDifferences
): TokenUsage | undefined => {
  const usage = tokensOf(protocol, value, differences)
  if (usage === undefined) return undefined
  const tools = toolUsesOf(protocol, value)
  return tools === undefined ? usage : { ...usage, tools }
}

const tokensOf = (
  protocol: UsageProtocol,
  value: unknown,
  differences?: UsageDifferences
): TokenUsage | undefined => {
  switch (protocol) {
    case "openai-chat":
    case "openai-embeddings":
      return openAiUsage(at(value, "usage"), differences)
    case "openai-responses":
      return responsesUsage(at(value, "usage") ?? at(value, "response", "usage"))
    case "openai-speech":
      return responsesUsage(at(value, "usage"))
    case "openai-transcription":
      return transcriptionUsage(value)
    case "rerank":
      return rerankUsage(value)
    case "anthropic-messages":
      return anthropicUsage(at(value, "usage") ?? at(value, "message", "usage"))
    case "gemini-embeddings":
      return geminiUsage(at(value, "usageMetadata"))
    case "gemini-generate":
      // A stream without `alt=sse` is one array of its chunks
      return Array.isArray(value)
        ? value.map((chunk) => usageOf(protocol, chunk)).findLast((usage) => usage !== undefined)
        : geminiUsage(at(value, "usageMetadata"))
  }
}

const openAiCache = (details: unknown) => ({
  cachedInputTokens: count(details, "cached_tokens"),
  cacheWriteTokens: count(details, "cache_write_tokens"),
  cacheWriteLongTokens: count(details, "cache_write_tokens_details", "ttl_12h_tokens")
})

const openAiUsage = (
  usage: unknown,
  differences: UsageDifferences | undefined
): TokenUsage | undefined => {
  if (!isObject(usage)) return undefined
  const figures = {
    inputTokens: count(usage, "prompt_tokens"),
    outputTokens: count(usage, "completion_tokens"),
    ...openAiCache(at(usage, "prompt_tokens_details")),
    reasoningTokens: count(usage, "completion_tokens_details", "reasoning_tokens")
  }
  return differences === undefined ? figures : asDiffering(figures, usage, differences)
}

const asDiffering = (
  figures: TokenUsage & { readonly cachedInputTokens: number; readonly reasoningTokens: number },
  usage: unknown,
  { cachedTokens, reasoningTokens }: UsageDifferences
): TokenUsage => ({
  ...figures,
  ...(cachedTokens === undefined
    ? {}
    : { cachedInputTokens: Math.max(figures.cachedInputTokens, count(usage, cachedTokens)) }),
  ...(reasoningTokens === "beside"
    ? { outputTokens: figures.outputTokens + figures.reasoningTokens }
    : {})
})

const responsesUsage = (usage: unknown): TokenUsage | undefined =>
  isObject(usage)
    ? {
        inputTokens: count(usage, "input_tokens"),
        outputTokens: count(usage, "output_tokens"),
        ...openAiCache(at(usage, "input_tokens_details")),
        reasoningTokens: count(usage, "output_tokens_details", "reasoning_tokens")
      }
    : undefined

/**
 * The seconds of a transcription, if the model is charged by them: from `usage`, or from `duration` of a verbose
 * response.
 */
const transcriptionUsage = (value: unknown): TokenUsage | undefined => {
  const usage = at(value, "usage")
  const seconds = at(usage, "seconds") ?? at(value, "duration")
  if (!isObject(usage) && seconds === undefined) return undefined
  return {
    inputTokens: count(usage, "input_tokens"),
    outputTokens: count(usage, "output_tokens"),
    audioInputTokens: count(usage, "input_token_details", "audio_tokens"),
    ...(seconds === undefined ? {} : { seconds: length(seconds) })
  }
}

/** A duration. Some servers write it as text. */
const length = (value: unknown): number => {
  const seconds = typeof value === "string" ? Number.parseFloat(value) : value
  return typeof seconds === "number" && Number.isFinite(seconds) && seconds >= 0 ? seconds : NaN
}

/** Cohere reports searches in `meta`, Jina tokens in `usage`. */
const rerankUsage = (value: unknown): TokenUsage | undefined => {
  const usage = at(value, "usage")
  const billed = at(value, "meta", "billed_units")
  if (!isObject(usage) && !isObject(billed)) return undefined
  const searches = count(billed, "search_units")
  return {
    inputTokens: isObject(usage) ? count(usage, "total_tokens") : count(billed, "input_tokens"),
    outputTokens: 0,
    ...(searches === 0 ? {} : { searches })
  }
}

/** Anthropic's totals exclude compactions of the context, which only `iterations` lists. */
const anthropicUsage = (usage: unknown): TokenUsage | undefined => {
  if (!isObject(usage)) return undefined
  const iterations = at(usage, "iterations")
  return Array.isArray(iterations)
    ? iterations
        .filter((it: unknown) => at(it, "type") === "compaction")
        .map(anthropicFigures)
        .reduce<TokenUsage>(withCompaction, anthropicFigures(usage))
    : anthropicFigures(usage)
}

const withCompaction = (total: TokenUsage, one: TokenUsage): TokenUsage => {
  const sum = (name: "cachedInputTokens" | "cacheWriteTokens" | "cacheWriteLongTokens") =>
    (total[name] ?? 0) + (one[name] ?? 0)
  return {
    ...total,
    inputTokens: total.inputTokens + one.inputTokens,
    outputTokens: total.outputTokens + one.outputTokens,
    cachedInputTokens: sum("cachedInputTokens"),
    cacheWriteTokens: sum("cacheWriteTokens"),
    cacheWriteLongTokens: sum("cacheWriteLongTokens"),
    compactedTokens: (total.compactedTokens ?? 0) + one.inputTokens
  }
}

/** Anthropic's `input_tokens` excludes cached tokens; `inputTokens` is the sum. */
const anthropicFigures = (usage: unknown): TokenUsage => {
  const cached = count(usage, "cache_read_input_tokens")
  const written = count(usage, "cache_creation_input_tokens")
  return {
    inputTokens: count(usage, "input_tokens") + cached + written,
    outputTokens: count(usage, "output_tokens"),
    cachedInputTokens: cached,
    cacheWriteTokens: written,
    cacheWriteLongTokens: count(usage, "cache_creation", "ephemeral_1h_input_tokens"),
    reasoningTokens: count(usage, "output_tokens_details", "thinking_tokens")
  }
}

/** Gemini counts thoughts separately from the candidates' tokens; `outputTokens` is the sum. */
const geminiUsage = (usage: unknown): TokenUsage | undefined => {
  if (!isObject(usage)) return undefined
  const thoughts = count(usage, "thoughtsTokenCount")
  const audio = modality(at(usage, "promptTokensDetails"), "AUDIO")
  const cachedAudio = modality(at(usage, "cacheTokensDetails"), "AUDIO")
  const image = modality(at(usage, "candidatesTokensDetails"), "IMAGE")
  return {
    inputTokens: count(usage, "promptTokenCount") + count(usage, "toolUsePromptTokenCount"),
    outputTokens: count(usage, "candidatesTokenCount") + thoughts,
    cachedInputTokens: count(usage, "cachedContentTokenCount"),
    reasoningTokens: thoughts,
    ...modalities(Math.max(0, audio - cachedAudio), image)
  }
}

/** Gemini's modalities by name and by number, which a client may request instead. */
const modalityNames = {
  IMAGE: new Set<unknown>(["IMAGE", 2]),
  AUDIO: new Set<unknown>(["AUDIO", 4])
}

/** Gemini's tokens of one modality. */
const modality = (details: unknown, name: keyof typeof modalityNames): number => {
  if (!Array.isArray(details)) return 0
  const names = modalityNames[name]
  return details.reduce<number>(
    (sum, detail: unknown) =>
      names.has(at(detail, "modality")) ? sum + count(detail, "tokenCount") : sum,
    0
  )
}

/** Omits zero counts: most calls contain only text, and their receipts have no such members. */
const modalities = (audio: number, image: number) => ({
  ...(audio === 0 ? {} : { audioInputTokens: audio }),
  ...(image === 0 ? {} : { imageOutputTokens: image })
})

/**
 * The model named by a response or one event of a stream; `undefined` if it names none.
 * docs/reference/wallet.md#the-model-that-responded
 */
export const responderOf = (protocol: UsageProtocol, value: unknown): string | undefined => {
  const name = namedBy(protocol, value)
  return typeof name === "string" ? name : undefined
}

const namedBy = (protocol: UsageProtocol, value: unknown): unknown => {
  switch (protocol) {
    case "openai-chat":
    case "openai-embeddings":
    case "openai-speech":
    case "openai-transcription":
    case "rerank":
      return at(value, "model")
    case "openai-responses":
      return at(value, "model") ?? at(value, "response", "model")
    case "anthropic-messages":
      return (
        fallbackOf(at(value, "usage", "iterations")) ??
        at(value, "model") ??
        at(value, "message", "model")
      )
    case "gemini-embeddings":
    case "gemini-generate":
      return Array.isArray(value)
        ? value.map((chunk) => namedBy(protocol, chunk)).findLast((name) => name !== undefined)
        : at(value, "modelVersion")
  }
}

/** The model of `fallbacks` that responded, when the requested one refused. */
const fallbackOf = (iterations: unknown): unknown =>
  Array.isArray(iterations)
    ? at(
        iterations.findLast((it: unknown) => at(it, "type") === "fallback_message"),
        "model"
      )
    : undefined

/** Merges figures. Events of a stream are cumulative, so the highest figure of each kind counts. */
export const mergeUsage = (a: TokenUsage | undefined, b: TokenUsage): TokenUsage =>
  a === undefined
    ? b
    : {
        inputTokens: Math.max(a.inputTokens, b.inputTokens),
        outputTokens: Math.max(a.outputTokens, b.outputTokens),
        cachedInputTokens: Math.max(a.cachedInputTokens ?? 0, b.cachedInputTokens ?? 0),
        cacheWriteTokens: Math.max(a.cacheWriteTokens ?? 0, b.cacheWriteTokens ?? 0),
        cacheWriteLongTokens: Math.max(a.cacheWriteLongTokens ?? 0, b.cacheWriteLongTokens ?? 0),
        reasoningTokens: Math.max(a.reasoningTokens ?? 0, b.reasoningTokens ?? 0),
        ...compacted(Math.max(a.compactedTokens ?? 0, b.compactedTokens ?? 0)),
        ...usedTools(mergeToolUses(a.tools, b.tools)),
        ...mergeUnits(a, b),
        ...modalities(
          Math.max(a.audioInputTokens ?? 0, b.audioInputTokens ?? 0),
          Math.max(a.imageOutputTokens ?? 0, b.imageOutputTokens ?? 0)
        )
      }

const mergeUnits = (a: Units, b: Units): Units => ({
  ...larger("characters", a, b),
  ...larger("seconds", a, b),
  ...larger("searches", a, b)
})

const larger = (unit: keyof Units, a: Units, b: Units): Units => {
  const most = Math.max(a[unit] ?? 0, b[unit] ?? 0)
  return most === 0 ? {} : { [unit]: most }
}

const compacted = (tokens: number) => (tokens === 0 ? {} : { compactedTokens: tokens })

const usedTools = (tools: ToolUses | undefined) => (tools === undefined ? {} : { tools })

/**
 * Whether an event is the extra one that `include_usage` requests: it has usage but no choices.
 * docs/reference/vendors.md#openai-streams
 */
export const isUsageChunk = (event: unknown): boolean => {
  const choices = at(event, "choices")
  return Array.isArray(choices) && choices.length === 0 && isObject(at(event, "usage"))
}

/** Whether the event reports that the upstream failed during its response. */
export const isErrorEvent = (event: unknown): boolean =>
  isObject(at(event, "error")) ||
  at(event, "type") === "error" ||
  at(event, "type") === "response.failed"
