import { make, microPerCredit } from "../domain/Credits.ts"
import type { ModelPrice } from "./ModelPrice.ts"
import type { TokenModel } from "./OpenRoutes.ts"
import type { TokenPrice } from "./Price.ts"

/** The day on which the price lists were read. Later sunsets had been announced by then. */
const readOn = "2026-11-22"
const source = `docs/catalog.md#sources-of-prices, read ${readOn}`

/**
 * Prices below are in thousandths of a US dollar, as in the vendors' lists. A thousandth of a dollar is a tenth of a
 * credit.
 */
const mills = (amount: bigint) => make((amount * microPerCredit) / 10n)

/** Per million tokens: input, output, cache read, cache write, long-lived cache write. */
const rates = (input: bigint, output: bigint, cached: bigint, written = input, long = written) => ({
  input: mills(input),
  output: mills(output),
  cachedInput: mills(cached),
  cacheWrite: mills(written),
  cacheWriteLong: mills(long)
})
type Rates = ReturnType<typeof rates>

const price = (
  base: Rates & { readonly audioInput?: Rates["input"] },
  long: TokenPrice["long"],
  tools?: TokenPrice["tools"],
  batch?: TokenPrice["batch"]
): TokenPrice => ({
  per: "million_tokens",
  ...base,
  ...(batch === undefined ? {} : { batch }),
  ...(tools === undefined ? {} : { tools }),
  ...(long === undefined ? {} : { long })
})

/** OpenAI and Anthropic sell every model in batches, at half its rates. */
const batchShares: { readonly [vendor: string]: TokenPrice["batch"] } = {
  openai: make(microPerCredit / 2n),
  anthropic: make(microPerCredit / 2n)
}

type Tools = NonNullable<TokenPrice["tools"]>

/**
 * GPT Image 2 to 2.6 cost 5 dollars per million text tokens, 8 per million image tokens (a quarter if cached) and 30
 * per million output tokens. The largest picture has 23,719 output tokens, and 300 for partial pictures: 73 cents. The
 * rest of the dollar that is held is for 33,000 image tokens of input.
 */
const imageGeneration: Tools[string] = {
  per: "use",
  amount: mills(1000n),
  tokens: {
    input: mills(5_000n),
    cached_input: mills(1_250n),
    image_input: mills(8_000n),
    cached_image_input: mills(2_000n),
    output: mills(30_000n)
  }
}

/**
 * A thousand searches cost 10 dollars at OpenAI and Anthropic, and 14 dollars at Google since Gemini 3, also in Google
 * Maps. A thousand searches of OpenAI's files cost 2.50 dollars. An OpenAI container with 1 GB costs 3 cents.
 */
const toolPrices: { readonly [vendor: string]: Tools } = {
  openai: {
    web_search: { per: "use", amount: mills(10n) },
    file_search: { per: "use", amount: make(microPerCredit / 4n) },
    image_generation: imageGeneration,
    code_interpreter: { per: "container", amount: mills(30n) }
  },
  anthropic: { web_search: { per: "use", amount: mills(10n) } },
  google: {
    google_search: { per: "use", amount: mills(14n) },
    google_maps: { per: "use", amount: mills(14n) }
  }
}

/** Up to Gemini 2.5, a thousand prompts with searches cost 35 dollars, and 25 dollars with Google Maps. */
const toolPricesOf = (vendor: string, model: string): Tools | undefined =>
  model.startsWith("gemini-2.")
    ? {
        google_search: { per: "call", amount: mills(35n) },
        google_maps: { per: "call", amount: mills(25n) }
      }
    : toolPrices[vendor]

const chat =
  (vendor: string, outputTokensMax: number, inputTokensMax: number) =>
  (model: string, base: Rates, long?: TokenPrice["long"]): TokenModel => ({
    vendor,
    model,
    price: price(
      base,
      long,
      outputTokensMax === 0 ? undefined : toolPricesOf(vendor, model),
      batchShares[vendor]
    ),
    source,
    outputTokensMax,
    inputTokensMax
  })

const embedding = (model: string, input: bigint): TokenModel =>
  chat("openai", 0, 300_000)(model, rates(input, 0n, input))

/**
 * Anthropic: a cache read costs a tenth of the input, a cache write for 5 minutes 1.25 times the input, and for an hour
 * twice the input.
 */
const claudeRates = (input: bigint, output: bigint, cached = input / 10n) =>
  rates(input, output, cached, (input * 5n) / 4n, input * 2n)

/**
 * OpenAI since GPT-5.6: a cache write costs 1.25 times the input, and for 12 hours 2.5 times. Rates are higher above
 * 272,000 tokens.
 */
const gpt6Rates = (input: bigint, output: bigint, cached: bigint) =>
  [
    rates(input, output, cached, (input * 5n) / 4n, (input * 5n) / 2n),
    {
      above: 272_000,
      ...rates(input * 2n, (output * 3n) / 2n, cached * 2n, (input * 5n) / 2n, input * 5n)
    }
  ] as const

/** OpenAI models before GPT-5.6 with a million tokens of context. Cache writes cost as much as other input. */
const gpt54Rates = (input: bigint, output: bigint, cached: bigint) =>
  [
    rates(input, output, cached),
    { above: 272_000, ...rates(input * 2n, (output * 3n) / 2n, cached * 2n) }
  ] as const

/** Gemini: audio in the prompt may have its own rate. */
const withAudio = (base: Rates, audio: bigint) => ({ ...base, audioInput: mills(audio) })

const gpt4o = chat("openai", 16_384, 128_000)
const gpt41 = chat("openai", 32_768, 1_047_576)
const reasoner = chat("openai", 100_000, 200_000)
const gpt5 = chat("openai", 128_000, 272_000)
const gpt6 = chat("openai", 128_000, 922_000)
const claude4 = chat("anthropic", 64_000, 200_000)
const claude5 = chat("anthropic", 128_000, 1_000_000)
const gemini = chat("google", 65_536, 1_048_576)

/** A model that its vendor ends on this day, and the recommended replacement. */
const ending = (sunset: string, model: TokenModel, replacement?: string): TokenModel => ({
  ...model,
  sunset,
  deprecation: sunset < readOn ? sunset : readOn,
  ...(replacement === undefined ? {} : { replacement })
})

/** A model that reasons only if a request asks for it. */
const plain = (model: TokenModel): TokenModel => ({ ...model, reasons: false })

/** A launch price: the rates double on a given day. */
const doubling = (from: string, model: string, base: readonly [bigint, bigint, bigint]) => ({
  ...gemini(model, rates(...base)),
  laterPrices: [
    {
      from,
      price: price(
        rates(base[0] * 2n, base[1] * 2n, base[2] * 2n),
        undefined,
        toolPricesOf("google", model)
      )
    }
  ]
})

const openAi: ReadonlyArray<TokenModel> = [
  gpt6("gpt-6-astra", ...gpt6Rates(10_000n, 50_000n, 1000n)),
  gpt6("gpt-6.2-astra", ...gpt6Rates(8000n, 40_000n, 400n)),
  gpt6("gpt-6.2-sol", ...gpt6Rates(2000n, 10_000n, 100n)),
  gpt6("gpt-6.1-sol", ...gpt6Rates(2000n, 10_000n, 100n)),
  gpt6("gpt-6.1-terra", ...gpt6Rates(1000n, 5000n, 50n)),
  gpt6("gpt-6-sol", ...gpt6Rates(2000n, 10_000n, 200n)),
  gpt6("gpt-6-luna", ...gpt6Rates(100n, 500n, 10n)),
  // The list price: a promotion (4 and 20 dollars) was promised until 2026-11-21
  gpt6("gpt-5.6-sol", ...gpt6Rates(5000n, 30_000n, 500n)),
  gpt6("gpt-5.6-terra", ...gpt6Rates(2000n, 12_000n, 200n)),
  gpt6("gpt-5.6-luna", ...gpt6Rates(200n, 1200n, 20n)),
  gpt6("gpt-5.5", ...gpt54Rates(5000n, 30_000n, 500n)),
  gpt6("gpt-5.5-pro", ...gpt54Rates(30_000n, 180_000n, 30_000n)),
  gpt6("gpt-5.4", ...gpt54Rates(2500n, 15_000n, 250n)),
  gpt5("gpt-5.4-mini", rates(750n, 4500n, 75n)),
  ending("2027-04-01", gpt5("gpt-5.4-nano", rates(200n, 1250n, 20n))),
  gpt5("gpt-5.2", rates(1750n, 14_000n, 175n)),
  gpt5("gpt-5.2-pro", rates(21_000n, 168_000n, 21_000n)),
  ending("2027-04-01", gpt5("gpt-5.1", rates(1250n, 10_000n, 125n))),
  ending("2026-12-11", gpt5("gpt-5", rates(1250n, 10_000n, 125n)), "gpt-6.1-sol"),
  ending("2026-12-11", gpt5("gpt-5-mini", rates(250n, 2000n, 25n)), "gpt-6.1-terra"),
  ending("2026-12-11", gpt5("gpt-5-nano", rates(50n, 400n, 5n)), "gpt-6-luna"),
  ending(
    "2026-12-11",
    chat("openai", 272_000, 272_000)("gpt-5-pro", rates(15_000n, 120_000n, 15_000n)),
    "gpt-5.6-sol"
  ),
  ending("2027-01-14", plain(gpt4o("gpt-4o", rates(2500n, 10_000n, 1250n))), "gpt-6-luna"),
  ending("2027-01-14", plain(gpt4o("gpt-4o-mini", rates(150n, 600n, 75n))), "gpt-6-luna"),
  ending("2027-01-14", plain(gpt41("gpt-4.1", rates(2000n, 8000n, 500n))), "gpt-6-luna"),
  ending("2027-01-14", plain(gpt41("gpt-4.1-mini", rates(400n, 1600n, 100n))), "gpt-6-luna"),
  ending("2026-12-11", reasoner("o3", rates(2000n, 8000n, 500n)), "gpt-5.6-sol"),
  ending("2026-12-11", reasoner("o3-pro", rates(20_000n, 80_000n, 20_000n)), "gpt-5.6-sol"),
  embedding("text-embedding-3-small", 20n),
  embedding("text-embedding-3-large", 130n),
  embedding("text-embedding-ada-002", 100n)
]

/** Audio models, with their largest input in characters, seconds or tokens. docs/catalog.md#sources-of-prices */
const openAiSound = (
  kind: "speech" | "transcription",
  model: string,
  price: ModelPrice,
  inputTokensMax: number,
  outputTokensMax = 0
): TokenModel => ({
  vendor: "openai",
  model,
  kind,
  price,
  source,
  outputTokensMax,
  inputTokensMax
})

/** The most characters of a request. */
const charactersMax = 4096
const spoken = (amount: bigint): ModelPrice => ({
  per: "million_characters",
  amount: mills(amount)
})

/** The duration of a 25 MB file at 6 kilobits per second, the lowest bit rate of the accepted formats. */
const secondsMax = 34_953

/** Amounts in tenths of a mill. */
const minutes = (amount: bigint): ModelPrice => ({
  per: "minute",
  amount: make((amount * microPerCredit) / 100n)
})

/** Prices of prompt, transcript and audio tokens. */
const heard = (model: string, input: bigint, output: bigint, sound: bigint): TokenModel => {
  const tokens = { input: mills(input), output: mills(output), audioInput: mills(sound) }
  return openAiSound("transcription", model, { per: "million_tokens", ...tokens }, 16_000, 2000)
}

const openAiAudio: ReadonlyArray<TokenModel> = [
  ending("2027-01-06", openAiSound("speech", "tts-1", spoken(15_000n), charactersMax)),
  ending("2027-01-06", openAiSound("speech", "tts-1-hd", spoken(30_000n), charactersMax)),
  ending(
    "2027-01-06",
    openAiSound(
      "speech",
      "gpt-4o-mini-tts",
      { per: "million_tokens", input: mills(600n), output: mills(12_000n) },
      2000,
      32_768
    )
  ),
  openAiSound("transcription", "whisper-1", minutes(60n), secondsMax),
  openAiSound("transcription", "gpt-transcribe", minutes(45n), secondsMax),
  heard("gpt-4o-transcribe", 2500n, 10_000n, 6000n),
  heard("gpt-4o-transcribe-diarize", 2500n, 10_000n, 6000n),
  heard("gpt-4o-mini-transcribe", 1250n, 5000n, 3000n)
]

const anthropic: ReadonlyArray<TokenModel> = [
  claude5("claude-fable-5-2", claudeRates(8000n, 40_000n, 200n)),
  claude5("claude-fable-5-1", claudeRates(10_000n, 50_000n, 250n)),
  claude5("claude-fable-5", claudeRates(10_000n, 50_000n)),
  claude5("claude-mythos-5-1", claudeRates(10_000n, 50_000n, 250n)),
  claude5("claude-mythos-5", claudeRates(10_000n, 50_000n)),
  claude5("claude-opus-5-5", claudeRates(4000n, 20_000n, 200n)),
  claude5("claude-opus-5", claudeRates(5000n, 25_000n)),
  plain(claude5("claude-opus-4-8", claudeRates(5000n, 25_000n))),
  plain(claude5("claude-opus-4-7", claudeRates(5000n, 25_000n))),
  plain(claude5("claude-opus-4-6", claudeRates(5000n, 25_000n))),
  plain(claude4("claude-opus-4-5", claudeRates(5000n, 25_000n))),
  // Since 2026-10-07 a cache read costs a twentieth of the input
  claude5("claude-sonnet-5-5", claudeRates(2000n, 10_000n, 100n)),
  claude5("claude-sonnet-5", claudeRates(2000n, 10_000n)),
  plain(chat("anthropic", 64_000, 1_000_000)("claude-sonnet-4-6", claudeRates(3000n, 15_000n))),
  ending(
    "2026-11-30",
    plain(claude4("claude-sonnet-4-5", claudeRates(3000n, 15_000n))),
    "claude-sonnet-5-5"
  ),
  claude5("claude-haiku-5-5", claudeRates(100n, 500n), {
    above: 100_000,
    ...claudeRates(500n, 2500n)
  }),
  plain(claude4("claude-haiku-4-5", claudeRates(1000n, 5000n)))
]

const google: ReadonlyArray<TokenModel> = [
  doubling("2026-12-01", "gemini-4-argon", [2000n, 10_000n, 100n]),
  doubling("2026-12-01", "gemini-4-carbon", [2000n, 10_000n, 100n]),
  doubling("2027-01-01", "gemini-3.8-flash", [750n, 3750n, 75n]),
  // Since its last day Google serves, and charges, the replacement
  ending(
    "2026-10-08",
    doubling("2027-01-01", "gemini-3.7-flash", [750n, 3750n, 75n]),
    "gemini-3.8-flash"
  ),
  doubling("2027-01-01", "gemini-3.6-flash", [750n, 3750n, 75n]),
  ending("2026-10-08", gemini("gemini-3.5-flash", rates(1500n, 9000n, 150n)), "gemini-3.6-flash"),
  gemini("gemini-3.5-flash-lite", rates(300n, 2500n, 30n)),
  ...["gemini-3.1-pro-preview", "gemini-3.1-pro-preview-customtools"].map((model) =>
    gemini(model, rates(2000n, 12_000n, 200n), {
      above: 200_000,
      ...rates(4000n, 18_000n, 400n)
    })
  ),
  ending("2027-05-07", gemini("gemini-3.1-flash-lite", withAudio(rates(250n, 1500n, 25n), 500n))),
  gemini("gemini-3-flash-preview", withAudio(rates(500n, 3000n, 50n), 1000n)),
  ending(
    "2026-12-01",
    gemini("gemini-2.5-pro", rates(1250n, 10_000n, 125n), {
      above: 200_000,
      ...rates(2500n, 15_000n, 250n)
    }),
    "gemini-3.8-flash"
  ),
  ending(
    "2026-12-01",
    gemini("gemini-2.5-flash", withAudio(rates(300n, 2500n, 30n), 1000n)),
    "gemini-3.5-flash-lite"
  ),
  plain(gemini("gemini-2.5-flash-lite", withAudio(rates(100n, 400n, 10n), 300n))),
  {
    vendor: "google",
    model: "gemini-nano-banana-2.1",
    price: {
      per: "million_tokens",
      input: mills(1500n),
      output: mills(7500n),
      imageOutput: mills(30_000n)
    },
    source,
    outputTokensMax: 65_536,
    inputTokensMax: 131_072
  },
  // The most tokens of a batch request: 100 texts of 2048 tokens
  chat("google", 0, 204_800)("gemini-embedding-001", rates(150n, 0n, 150n))
]

/**
 * The vendors' list prices as of 2026-11-22 (docs/catalog.md#sources-of-prices). The operator checks them
 * before use and changes them in `CATALOG_FILE`.
 */
export const builtInTokenModels: ReadonlyArray<TokenModel> = [
  ...openAi,
  ...openAiAudio,
  ...anthropic,
  ...google
]
