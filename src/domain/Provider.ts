import type { Redacted } from "effect"

/**
 * Companies where the service has accounts, and the prefix of their variables.
 * docs/reference/configuration.md#vendor-accounts
 */
export const providerVariables = {
  openai: "OPENAI",
  anthropic: "ANTHROPIC",
  gemini: "GEMINI",
  dashscope: "DASHSCOPE",
  fal: "FAL",
  replicate: "REPLICATE"
} as const

export type Provider = keyof typeof providerVariables

/**
 * Defaults of the vendors' own clients: some end in the version segment, some do not.
 * docs/reference/configuration.md#vendor-bases
 */
export const providerBases: { readonly [provider in Provider]: string } = {
  openai: "https://api.openai.com/v1",
  anthropic: "https://api.anthropic.com",
  gemini: "https://generativelanguage.googleapis.com",
  dashscope: "https://dashscope.aliyuncs.com/api/v1",
  fal: "https://queue.fal.run",
  replicate: "https://api.replicate.com/v1"
}

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
  readonly key: Redacted.Redacted
  /** Absolute, without a trailing slash. */
  readonly baseUrl: string
  /** Share of new work, a positive integer. */
  readonly weight: number
  /** Most concurrent jobs at the vendor, over all processes; absent: the documented limit. */
  readonly concurrent?: number
  /** Polls per second, over all processes; absent: the vendor's default. */
  readonly polls?: number
  /** Of a DashScope account; absent: derived from the host of `baseUrl`, if it is the vendor's. */
  readonly region?: Region
  /** Where fal publishes the keys that sign its callbacks; absent: fal's default. */
  readonly jwksUrl?: string
}
