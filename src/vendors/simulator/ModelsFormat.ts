import type { Provider } from "../../domain/Provider.ts"
import { builtInTokenModels } from "../../models/TokenModels.ts"

/** A fixed time. */
const createdSeconds = 1_735_689_600
const createdAt = "2025-01-01T00:00:00Z"

const vendorOf: { readonly [provider in Provider]: string } = {
  openai: "openai",
  anthropic: "anthropic",
  gemini: "google",
  dashscope: "alibaba",
  fal: "fal",
  replicate: "replicate"
}

/** The list of models, or one of them, in the vendor's format: those that have a price. */
export const modelsAnswer = (provider: Provider, path: string): unknown => {
  const names = builtInTokenModels
    .filter(({ vendor }) => vendor === vendorOf[provider])
    .map(({ model }) => model)
  const wanted = /\/models\/(.+)$/u.exec(path)?.[1]
  if (wanted !== undefined) return modelOf(provider, decodeURIComponent(wanted))
  const data = names.map((name) => modelOf(provider, name))
  switch (provider) {
    case "anthropic":
      return { data, has_more: false, first_id: names[0] ?? null, last_id: names.at(-1) ?? null }
    case "gemini":
      return { models: data }
    default:
      return { object: "list", data }
  }
}

const modelOf = (provider: Provider, name: string): unknown => {
  switch (provider) {
    case "anthropic":
      return { type: "model", id: name, display_name: name, created_at: createdAt }
    case "gemini":
      return { name: `models/${name}`, displayName: name }
    default:
      return { id: name, object: "model", created: createdSeconds, owned_by: "simulator" }
  }
}
