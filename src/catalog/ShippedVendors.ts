import { make } from "../domain/Credits.ts"
import { blackForestLabs } from "./jobs/BlackForestLabs.ts"
import { bytePlus } from "./jobs/BytePlus.ts"
import { elevenLabs } from "./jobs/ElevenLabs.ts"
import { luma } from "./jobs/Luma.ts"
import { runway } from "./jobs/Runway.ts"
import type { TokenModel } from "./OpenRoutes.ts"
import type { TokenPrice } from "./Price.ts"
import type { Vendor } from "./Vendors.ts"

const source = "anomalyco/models.dev@f3fc692, 2026-07-02"

/** Prices below are in hundredths of a US cent per million tokens. A hundredth of a cent is a hundredth of a credit. */
const rates = (input: number, output: number, cachedInput = input) => ({
  input: make(BigInt(input) * 10_000n),
  output: make(BigInt(output) * 10_000n),
  cachedInput: make(BigInt(cachedInput) * 10_000n)
})

type Model = Omit<TokenModel, "vendor">

const sold = (
  model: string,
  price: ReturnType<typeof rates> & Pick<TokenPrice, "long">,
  [inputTokensMax, outputTokensMax]: readonly [number, number],
  more: Pick<TokenModel, "reasons"> = {}
): Model => ({
  model,
  price: { per: "million_tokens", ...price },
  source,
  inputTokensMax,
  outputTokensMax,
  ...more
})

/** The rates double for prompts of more than 200,000 tokens. */
const grok = (input: number, output: number, cached: number) => ({
  ...rates(input, output, cached),
  long: { above: 200_000, ...rates(2 * input, 2 * output, 2 * cached) }
})

const silent = { reasons: false } as const

/** Priced per search. `perThousand` is in tenths of a credit per thousand searches. */
const searching = (model: string, perThousand: number): Model => ({
  model,
  kind: "rerank",
  price: { per: "search", amount: make(BigInt(perThousand) * 100n) },
  source: "developer.puter.com/tutorials/cohere-api-pricing, read 2026-11-26",
  // 10,000 documents, should each of them have ten parts
  inputTokensMax: 1000,
  outputTokensMax: 0
})

const reranking = (model: string, input: number): Model => ({
  model,
  kind: "rerank",
  price: { per: "million_tokens", ...rates(input, 0) },
  source: "public cost tables, read 2026-11-26",
  inputTokensMax: 8_388_608,
  outputTokensMax: 0
})

const chat = "/v1/chat/completions"
const embeddings = "/v1/embeddings"
const models = "/v1/models"
const rerank = "/v1/rerank"

const openAiLike = { auth: "bearer", dialect: "openai" } as const
const selfHosted = {
  auth: "optional-bearer",
  dialect: "openai",
  routes: [chat, embeddings, models]
} as const

/**
 * Vendors that need no entry in a catalog file, written in the form of such entries. For a vendor without models, the
 * operator sets prices. docs/reference/vendors.md#vendors-as-data
 */
export const shippedVendors: ReadonlyArray<Vendor> = [
  {
    ...openAiLike,
    name: "deepseek",
    base: "https://api.deepseek.com/v1",
    routes: [chat, models],
    usage: { cachedTokens: "prompt_cache_hit_tokens", reasoning: "shown" },
    models: [
      sold("deepseek-v4-flash", rates(1400, 2800, 28), [1_000_000, 384_000]),
      sold("deepseek-v4-pro", rates(4350, 8700, 37), [1_000_000, 384_000]),
      sold("deepseek-chat", rates(1400, 2800, 28), [1_000_000, 384_000], silent),
      sold("deepseek-reasoner", rates(1400, 2800, 28), [1_000_000, 384_000])
    ]
  },
  {
    ...openAiLike,
    name: "xai",
    base: "https://api.x.ai/v1",
    routes: [chat, models],
    usage: { reasoningTokens: "beside" },
    models: [
      sold("grok-4.3", grok(12_500, 25_000, 2000), [1_000_000, 30_000]),
      sold("grok-4.20-0309-reasoning", grok(12_500, 25_000, 2000), [1_000_000, 30_000]),
      sold("grok-4.20-0309-non-reasoning", grok(12_500, 25_000, 2000), [1_000_000, 30_000], silent),
      sold("grok-build-0.1", grok(10_000, 20_000, 2000), [256_000, 256_000])
    ]
  },
  {
    ...openAiLike,
    name: "mistral",
    base: "https://api.mistral.ai/v1",
    routes: [chat, embeddings, models],
    usage: { inStreams: "unasked" },
    models: [
      sold("mistral-large-latest", rates(5000, 15_000), [262_144, 262_144], silent),
      sold("mistral-small-latest", rates(1500, 6000), [256_000, 256_000]),
      sold("magistral-medium-latest", rates(20_000, 50_000), [128_000, 16_384]),
      sold("codestral-latest", rates(3000, 9000), [256_000, 4096], silent),
      sold("ministral-8b-latest", rates(1000, 1000), [128_000, 128_000], silent),
      // The most tokens of one of its batch requests
      sold("mistral-embed", rates(1000, 0), [16_384, 0], silent)
    ]
  },
  {
    ...openAiLike,
    name: "groq",
    base: "https://api.groq.com/openai/v1",
    routes: [chat, models],
    models: [
      sold("llama-3.1-8b-instant", rates(500, 800), [131_072, 131_072], silent),
      sold("llama-3.3-70b-versatile", rates(5900, 7900), [131_072, 32_768], silent),
      sold("openai/gpt-oss-20b", rates(750, 3000, 375), [131_072, 65_536]),
      sold("openai/gpt-oss-120b", rates(1500, 6000, 750), [131_072, 65_536]),
      sold("qwen/qwen3-32b", rates(2900, 5900), [131_072, 40_960])
    ]
  },
  {
    ...openAiLike,
    name: "together",
    base: "https://api.together.xyz/v1",
    routes: [chat, embeddings, models],
    models: [
      sold(
        "meta-llama/Llama-3.3-70B-Instruct-Turbo",
        rates(8800, 8800),
        [131_072, 131_072],
        silent
      ),
      sold("openai/gpt-oss-120b", rates(1500, 6000), [131_072, 131_072]),
      sold("deepseek-ai/DeepSeek-V4-Pro", rates(17_400, 34_800, 2000), [512_000, 384_000]),
      sold("moonshotai/Kimi-K2.6", rates(12_000, 45_000, 2000), [262_144, 131_000]),
      sold("zai-org/GLM-5.2", rates(14_000, 44_000, 2600), [262_144, 164_000])
    ]
  },
  {
    ...openAiLike,
    name: "fireworks",
    base: "https://api.fireworks.ai/inference/v1",
    routes: [chat, embeddings, models],
    models: [
      sold("accounts/fireworks/models/gpt-oss-120b", rates(1500, 6000, 150), [131_072, 32_768]),
      sold("accounts/fireworks/models/kimi-k2p6", rates(9500, 40_000, 1600), [262_000, 262_000]),
      sold("accounts/fireworks/models/glm-5p2", rates(14_000, 44_000, 2600), [1_048_575, 131_072])
    ]
  },
  {
    ...openAiLike,
    name: "openrouter",
    base: "https://openrouter.ai/api/v1",
    routes: [chat, models]
  },
  {
    ...openAiLike,
    name: "moonshot",
    base: "https://api.moonshot.ai/v1",
    routes: [chat, models],
    usage: { cachedTokens: "cached_tokens", reasoning: "shown" },
    models: [
      sold("kimi-k2.5", rates(6000, 30_000, 1000), [262_144, 262_144]),
      sold("kimi-k2.6", rates(9500, 40_000, 1600), [262_144, 262_144]),
      sold("kimi-k2-thinking", rates(6000, 25_000, 1500), [262_144, 262_144])
    ]
  },
  {
    ...openAiLike,
    name: "zhipu",
    base: "https://api.z.ai/api/paas/v4",
    routes: ["/v4/chat/completions", "/v4/embeddings", "/v4/models"],
    usage: { reasoning: "shown" },
    models: [
      sold("glm-4.5-air", rates(2000, 11_000, 300), [131_072, 98_304]),
      sold("glm-4.6", rates(6000, 22_000, 1100), [204_800, 131_072]),
      sold("glm-4.7", rates(6000, 22_000, 1100), [204_800, 131_072]),
      sold("glm-5", rates(10_000, 32_000, 2000), [204_800, 131_072]),
      sold("glm-5.1", rates(14_000, 44_000, 2600), [200_000, 131_072]),
      sold("glm-5.2", rates(14_000, 44_000, 2600), [1_000_000, 131_072])
    ]
  },
  {
    ...openAiLike,
    name: "cohere",
    base: "https://api.cohere.com/v2",
    routes: ["/v2/rerank"],
    models: [
      searching("rerank-v4.0-pro", 2500),
      searching("rerank-v4.0-fast", 2000),
      searching("rerank-v3.5", 2000)
    ]
  },
  {
    ...openAiLike,
    name: "jina",
    base: "https://api.jina.ai/v1",
    routes: [rerank],
    models: [
      reranking("jina-reranker-v3", 500),
      reranking("jina-reranker-v2-base-multilingual", 500)
    ]
  },
  // Its models are the operator's deployments, and its base is that of a resource: https://….openai.azure.com/openai/v1
  {
    name: "azure-openai",
    auth: "api-key",
    dialect: "openai",
    routes: [chat, "/v1/responses", embeddings, models]
  },
  {
    ...selfHosted,
    name: "vllm",
    routes: [...selfHosted.routes, rerank, "/v1/audio/transcriptions", "/v1/audio/translations"]
  },
  { ...selfHosted, name: "ollama" },
  { ...selfHosted, name: "llama-cpp" }
]

/** Vendors of images, videos and audio that a catalog file opens by name. docs/reference/vendors.md#job-vendors */
export const shippedJobVendors: ReadonlyMap<string, Vendor> = new Map(
  [blackForestLabs, bytePlus, elevenLabs, luma, runway].map((vendor) => [vendor.name, vendor])
)
