import { make, microPerCredit } from "../domain/Credits.ts"
import type { TokenModel } from "./OpenRoutes.ts"
import type { TokenPrice } from "./Price.ts"

/** Prices below are in thousandths of a US dollar, as in the vendors' lists; one is a tenth of a credit. */
const mills = (amount: bigint) => make((amount * microPerCredit) / 10n)

/** For a million tokens: input, output, cache read, cache write, long-lived cache write. */
const rates = (input: bigint, output: bigint, cached: bigint, written = input, long = written) => ({
  input: mills(input),
  output: mills(output),
  cachedInput: mills(cached),
  cacheWrite: mills(written),
  cacheWriteLong: mills(long)
})
type Rates = ReturnType<typeof rates>

const price = (base: Rates, long?: TokenPrice["long"]): TokenPrice => ({
  per: "million_tokens",
  ...base,
  ...(long === undefined ? {} : { long })
})

const chat =
  (vendor: string, outputTokensMax: number, inputTokensMax: number) =>
  (model: string, base: Rates, long?: TokenPrice["long"]): TokenModel => ({
    vendor,
    model,
    price: price(base, long),
    outputTokensMax,
    inputTokensMax
  })

const embedding = (model: string, input: bigint): TokenModel =>
  chat("openai", 0, 300_000)(model, rates(input, 0n, input))

/** Anthropic: cache read a tenth of the input, cache write for 5 minutes 1.25 times, for an hour twice. */
const claudeRates = (input: bigint, output: bigint, cached = input / 10n) =>
  rates(input, output, cached, (input * 5n) / 4n, input * 2n)

/**
 * OpenAI since GPT-6: cache write 1.25 times the input, for 12 hours 2.5 times; higher rates above
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

const gpt4o = chat("openai", 16_384, 128_000)
const gpt41 = chat("openai", 32_768, 1_047_576)
const reasoner = chat("openai", 100_000, 200_000)
const gpt5 = chat("openai", 128_000, 272_000)
const gpt6 = chat("openai", 128_000, 922_000)
const claude4 = chat("anthropic", 64_000, 200_000)
const claude5 = chat("anthropic", 128_000, 1_000_000)
const gemini = chat("google", 65_536, 1_048_576)

/**
 * The vendors' list prices as of 2026-11-21 (docs/catalog.md#sources-of-prices). The operator checks them
 * before use and changes them in `CATALOG_FILE`.
 */
export const builtInTokenModels: ReadonlyArray<TokenModel> = [
  gpt4o("gpt-4o", rates(2500n, 10_000n, 1250n)),
  chat("openai", 4096, 128_000)("gpt-4o-2024-05-13", rates(5000n, 15_000n, 5000n)),
  gpt4o("gpt-4o-mini", rates(150n, 600n, 75n)),
  gpt41("gpt-4.1", rates(2000n, 8000n, 500n)),
  gpt41("gpt-4.1-mini", rates(400n, 1600n, 100n)),
  gpt41("gpt-4.1-nano", rates(100n, 400n, 25n)),
  reasoner("o3", rates(2000n, 8000n, 500n)),
  reasoner("o4-mini", rates(1100n, 4400n, 275n)),
  gpt5("gpt-5", rates(1250n, 10_000n, 125n)),
  gpt5("gpt-5-mini", rates(250n, 2000n, 25n)),
  gpt5("gpt-5-nano", rates(50n, 400n, 5n)),
  gpt5("gpt-5.1", rates(1250n, 10_000n, 125n)),
  gpt5("gpt-5.2", rates(1750n, 14_000n, 175n)),
  gpt6("gpt-6-sol", ...gpt6Rates(2000n, 10_000n, 200n)),
  gpt6("gpt-6.2-sol", ...gpt6Rates(2000n, 10_000n, 100n)),
  embedding("text-embedding-3-small", 20n),
  embedding("text-embedding-3-large", 130n),
  chat("anthropic", 32_000, 200_000)("claude-opus-4-1", claudeRates(15_000n, 75_000n)),
  claude4("claude-opus-4-5", claudeRates(5000n, 25_000n)),
  claude4("claude-sonnet-4-5", claudeRates(3000n, 15_000n)),
  claude4("claude-haiku-4-5", claudeRates(1000n, 5000n)),
  claude5("claude-opus-5", claudeRates(5000n, 25_000n)),
  claude5("claude-sonnet-5", claudeRates(2000n, 10_000n)),
  // Since 2026-10-07 a cache read costs a twentieth of the input
  claude5("claude-sonnet-5-5", claudeRates(2000n, 10_000n, 100n)),
  gemini("gemini-2.5-pro", rates(1250n, 10_000n, 125n), {
    above: 200_000,
    ...rates(2500n, 15_000n, 250n)
  }),
  gemini("gemini-2.5-flash", rates(300n, 2500n, 30n)),
  gemini("gemini-2.5-flash-lite", rates(100n, 400n, 10n)),
  // A batch has 100 texts of 2048 tokens
  chat("google", 0, 204_800)("gemini-embedding-001", rates(150n, 0n, 150n))
]
