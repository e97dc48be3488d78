import { Clock, Context, Effect, Exit, Metric, Tracer } from "effect"
import type { UsageProtocol } from "../catalog/OpenRoutes.ts"
import type { Provider } from "../domain/Provider.ts"
import type { CallCandidate } from "./CallPlan.ts"
import type { CallEnd, CallStart } from "./CallStore.ts"

/** Ends the span of a traced call. */
export type CallTrace = (end: CallEnd) => void

/** Begins the span of a call, from its hold to its settlement, as a child of the request's span. */
export type TraceCall = (start: CallStart, candidate: CallCandidate) => Effect.Effect<CallTrace>

/**
 * Spans and metrics of metered calls under OpenTelemetry's names for generative AI, without prompts and responses;
 * `undefined` without a tracer, so that ordinary calls pay nothing. Excludes the sandbox, which is not a model.
 * docs/reference/configuration.md#telemetry
 */
export const makeTraceCall: Effect.Effect<TraceCall | undefined> = Effect.gen(function* () {
  const clock = yield* Clock.Clock
  const tracer = yield* Effect.tracer
  if (tracer === Tracer.Tracer.defaultValue()) return undefined
  return (start, candidate) => (start.sandbox ? notTraced : traced(clock, candidate))
})

const notTraced = Effect.succeed<CallTrace>(() => {})

const traced = (clock: Clock.Clock, candidate: CallCandidate) =>
  Effect.gen(function* () {
    const { metered } = candidate.plan
    const { provider } = candidate.call.to.route
    const operation = metered._tag === "Tokens" ? operations[metered.protocol] : "call"
    const model = labelOf(candidate)
    const labels = {
      "gen_ai.operation.name": operation,
      "gen_ai.provider.name": providerNames.get(provider) ?? provider,
      "gen_ai.request.model": model
    }
    const span = yield* Effect.makeSpan(`${operation} ${model}`.trim(), {
      kind: "client",
      attributes: labels
    })
    const began = clock.currentTimeMillisUnsafe()
    return (end: CallEnd): void => {
      describe(span, end)
      const seconds = (clock.currentTimeMillisUnsafe() - began) / 1000
      const error = errorOf(end)
      record(durations, error === undefined ? labels : { ...labels, "error.type": error }, seconds)
      for (const [type, count] of Object.entries(countsOf(end))) {
        record(tokens, { ...labels, "gen_ai.token.type": type }, count)
      }
      span.end(clock.currentTimeNanosUnsafe(), error === undefined ? Exit.void : Exit.fail(error))
    }
  })

/**
 * The model as the catalog names it. Empty if it does not know the name in the path of a route by the call, because a
 * client can invent any number of names.
 */
const labelOf = ({ call, plan: { metered, model } }: CallCandidate): string => {
  if (metered._tag === "Tokens") return metered.model.model
  const { catalog, route } = call.to
  return model === null ? "" : (catalog.priced(route.vendor, model)?.model ?? "")
}

/** The names that the conventions prescribe, where they are not the gateway's. */
const providerNames: ReadonlyMap<Provider, string> = new Map([
  ["gemini", "gcp.gemini"],
  ["azure-openai", "azure.ai.openai"],
  ["mistral", "mistral_ai"],
  ["moonshot", "moonshot_ai"],
  ["xai", "x_ai"]
])

const operations: { readonly [protocol in UsageProtocol]: string } = {
  "openai-chat": "chat",
  "openai-responses": "chat",
  "openai-embeddings": "embeddings",
  "openai-speech": "speech",
  "openai-transcription": "transcription",
  rerank: "rerank",
  "anthropic-messages": "chat",
  "gemini-generate": "generate_content",
  "gemini-embeddings": "embeddings"
}

/** The error of a call that bought nothing: the vendor's status, or how the call ended. */
const errorOf = ({ outcome, status }: CallEnd): string | undefined =>
  outcome === "settled" ? undefined : String(status ?? outcome)

const numberOf = (value: unknown): number | undefined =>
  typeof value === "number" ? value : undefined

/** The tokens that the vendor reported; the gateway's estimates are not measurements. */
const countsOf = ({ usage }: CallEnd): Record<string, number> => {
  if (usage === null || usage["counted"] === true) return {}
  const input = numberOf(usage["inputTokens"])
  const output = numberOf(usage["outputTokens"])
  return {
    ...(input === undefined ? {} : { input }),
    ...(output === undefined ? {} : { output })
  }
}

const describe = (span: Tracer.Span, end: CallEnd): void => {
  const { firstTokenMillis, status, usage } = end
  const error = errorOf(end)
  const { input, output } = countsOf(end)
  const values = {
    "gen_ai.usage.input_tokens": input,
    "gen_ai.usage.output_tokens": output,
    "gen_ai.usage.cache_read.input_tokens": numberOf(usage?.["cachedInputTokens"]),
    "gen_ai.usage.cache_creation.input_tokens": numberOf(usage?.["cacheWriteTokens"]),
    "gen_ai.usage.reasoning.output_tokens": numberOf(usage?.["reasoningTokens"]),
    "gen_ai.request.stream": firstTokenMillis === undefined ? undefined : true,
    "gen_ai.response.time_to_first_chunk":
      firstTokenMillis === undefined ? undefined : firstTokenMillis / 1000,
    "http.response.status_code": status ?? undefined,
    "error.type": error
  }
  for (const [name, value] of Object.entries(values)) {
    if (value !== undefined) span.attribute(name, value)
  }
}

const durations = Metric.histogram("gen_ai.client.operation.duration", {
  description: "Duration of calls to language models",
  attributes: { unit: "seconds" },
  boundaries: [
    0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92
  ]
})

const tokens = Metric.histogram("gen_ai.client.token.usage", {
  description: "Tokens that vendors reported for calls",
  attributes: { unit: "{token}" },
  boundaries: Array.from({ length: 14 }, (_, power) => 4 ** power)
})

const record = (
  metric: Metric.Histogram<number>,
  labels: Record<string, string>,
  value: number
): void => Metric.withAttributes(metric, labels).updateUnsafe(value, Context.empty())
