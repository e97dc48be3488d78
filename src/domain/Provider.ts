import type { Redacted } from "effect"

/** The wire formats of language models that the gateway reads and simulates. */
export const dialects = ["openai", "anthropic", "gemini"] as const
export type Dialect = (typeof dialects)[number]

/** How a key is sent: a header of this name, or `Authorization: Bearer`; `optional-bearer` works without a key. */
export const keySchemes = [
  "bearer",
  "optional-bearer",
  "api-key",
  "x-api-key",
  "x-goog-api-key"
] as const
export type KeyScheme = (typeof keySchemes)[number]

/** Where a vendor's usage figures differ from its dialect's. docs/catalog.md#vendors */
export interface UsageDifferences {
  /** `unasked`: a stream has figures without `stream_options`, a parameter that the vendor refuses. */
  readonly inStreams?: "unasked"
  /** The member of `usage` with the cached tokens. */
  readonly cachedTokens?: string
  /** `beside`: the output tokens do not include the reasoning tokens. */
  readonly reasoningTokens?: "beside"
  /** `shown`: reasoning is streamed as `reasoning_content`, so the stream shows all tokens that are spent. */
  readonly reasoning?: "shown"
}

/** The name of a company where the service has accounts. docs/reference/configuration.md#vendor-accounts */
export type Provider = string

export interface ProviderEntry {
  /** Also the prefix of the provider's variables and of its account ids. */
  readonly name: Provider
  /** The default base of the vendor's own client. If absent, the operator must set one. */
  readonly base?: string
  /** The base comes from a catalog file, so its host must be public. */
  readonly guarded?: boolean
  readonly auth: KeyScheme
  readonly dialect: Dialect
  readonly usage?: UsageDifferences
}

/** The dialect of a provider that only has jobs. It has no effect, because such a provider has no routes. */
export const jobsDialect: Dialect = "openai"

/**
 * Providers whose protocols are code. Some bases end in the version segment, some do not. Adapters send keys in their
 * own way; `auth` and `dialect` apply to passthrough calls.
 */
export const builtInProviders = [
  { name: "openai", base: "https://api.openai.com/v1", auth: "bearer", dialect: "openai" },
  { name: "anthropic", base: "https://api.anthropic.com", auth: "x-api-key", dialect: "anthropic" },
  {
    name: "gemini",
    base: "https://generativelanguage.googleapis.com",
    auth: "x-goog-api-key",
    dialect: "gemini"
  },
  {
    name: "dashscope",
    base: "https://dashscope.aliyuncs.com/api/v1",
    auth: "bearer",
    dialect: "openai"
  },
  { name: "fal", base: "https://queue.fal.run", auth: "bearer", dialect: "openai" },
  { name: "replicate", base: "https://api.replicate.com/v1", auth: "bearer", dialect: "openai" }
] as const satisfies ReadonlyArray<ProviderEntry>

/** The path of a base without its slash and version segment at the end: `/openai` for Groq's, empty for most. */
export const pathBeforeVersion = (base: string): string =>
  new URL(base).pathname.replace(/\/+$/u, "").replace(/\/v\d+(?:(?:alpha|beta)\d*)?$/u, "")

/** `azure-openai` has `AZURE_OPENAI_API_KEY` and `AZURE_OPENAI_BASE_URL`. */
export const variableOf = (name: Provider): string => name.toUpperCase().replaceAll("-", "_")

/** Regions of DashScope by the vendor's own ids: models, their ids and their limits differ by region. */
export const regions = [
  "cn-beijing",
  "ap-southeast-1",
  "us-east-1",
  "eu-central-1",
  "cn-hongkong",
  "ap-northeast-1"
] as const
export type Region = (typeof regions)[number]

/** One account with a provider; several share new work by weight. ADR 0070. */
export interface AccountSetting {
  /** Stored with attempts and calls and shown in metrics: a name, or a fingerprint of the key; not secret. */
  readonly id: string
  readonly provider: Provider
  /** Empty for a server that needs no key. */
  readonly key: Redacted.Redacted
  /** Absolute, without a trailing slash. */
  readonly baseUrl: string
  /** How passthrough calls send the key; absent: `bearer`. */
  readonly auth?: KeyScheme
  /** The base did not come from the operator's configuration, so only public addresses are allowed. */
  readonly guarded?: boolean
  /** Share of new work, a positive integer. */
  readonly weight: number
  /** Most concurrent jobs at the vendor, over all processes; absent: the documented limit. */
  readonly concurrent?: number
  /** Polls per second, over all processes; absent: the vendor's default. */
  readonly polls?: number
  /** Region of a DashScope account; absent: derived from the host of `baseUrl`, if it is the vendor's. */
  readonly region?: Region
  /** Where fal publishes the keys that sign its callbacks; absent: fal's default. */
  readonly jwksUrl?: string
}
