import { make, microPerCredit } from "../domain/Credits.ts"
import type { TokenModel } from "./OpenRoutes.ts"

/** Thousandths of a US dollar, which are tenths of a credit: how the vendors' lists are written. */
const mills = (amount: bigint) => make((amount * microPerCredit) / 10n)

/** Prices for a million tokens: input, output, and input found in or written to the cache. */
const price = (input: bigint, output: bigint, cached: bigint, written = input) => ({
  per: "million_tokens" as const,
  input: mills(input),
  output: mills(output),
  cachedInput: mills(cached),
  cacheWrite: mills(written)
})

const chat = (
  vendor: string,
  model: string,
  prices: ReturnType<typeof price>,
  outputTokensMax: number,
  inputTokensMax: number
): TokenModel => ({ vendor, model, price: prices, outputTokensMax, inputTokensMax })

const embedding = (model: string, input: bigint): TokenModel =>
  chat("openai", model, price(input, 0n, input), 0, 300_000)

/** List prices of the vendors, to be checked by the operator before use; `CATALOG_FILE` changes them. */
export const builtInTokenModels: ReadonlyArray<TokenModel> = [
  chat("openai", "gpt-4o", price(2500n, 10_000n, 1250n), 16_384, 128_000),
  chat("openai", "gpt-4o-2024-05-13", price(5000n, 15_000n, 5000n), 4096, 128_000),
  chat("openai", "gpt-4o-mini", price(150n, 600n, 75n), 16_384, 128_000),
  chat("openai", "gpt-4.1", price(2000n, 8000n, 500n), 32_768, 1_047_576),
  chat("openai", "gpt-4.1-mini", price(400n, 1600n, 100n), 32_768, 1_047_576),
  chat("openai", "gpt-4.1-nano", price(100n, 400n, 25n), 32_768, 1_047_576),
  chat("openai", "o3", price(2000n, 8000n, 500n), 100_000, 200_000),
  chat("openai", "o4-mini", price(1100n, 4400n, 275n), 100_000, 200_000),
  chat("openai", "gpt-5", price(1250n, 10_000n, 125n), 128_000, 272_000),
  chat("openai", "gpt-5-mini", price(250n, 2000n, 25n), 128_000, 272_000),
  chat("openai", "gpt-5-nano", price(50n, 400n, 5n), 128_000, 272_000),
  embedding("text-embedding-3-small", 20n),
  embedding("text-embedding-3-large", 130n),
  chat("anthropic", "claude-opus-4-1", price(15_000n, 75_000n, 1500n, 18_750n), 32_000, 200_000),
  chat("anthropic", "claude-sonnet-4-5", price(3000n, 15_000n, 300n, 3750n), 64_000, 200_000),
  chat("anthropic", "claude-haiku-4-5", price(1000n, 5000n, 100n, 1250n), 64_000, 200_000),
  chat("google", "gemini-2.5-pro", price(2500n, 15_000n, 625n), 65_536, 1_048_576),
  chat("google", "gemini-2.5-flash", price(300n, 2500n, 75n), 65_536, 1_048_576),
  chat("google", "gemini-2.5-flash-lite", price(100n, 400n, 25n), 65_536, 1_048_576)
]
