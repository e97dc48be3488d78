import { dialectOfProvider } from "../catalog/UpstreamCatalog.ts"
import type { UpstreamCatalog } from "../catalog/UpstreamCatalog.ts"
import type { Dialect, Provider } from "../domain/Provider.ts"
import { createdSeconds } from "./OpenAiFormat.ts"

const createdAt = "2025-01-01T00:00:00Z"

export interface ModelsResponse {
  readonly status: number
  readonly value: unknown
}

/** The list of priced models, or one of them, in the vendor's format. */
export const modelsResponse = (
  catalog: UpstreamCatalog,
  provider: Provider,
  path: string
): ModelsResponse => {
  const vendors = new Set(
    catalog.routes.filter((route) => route.provider === provider).map(({ vendor }) => vendor)
  )
  const dialect = dialectOfProvider(catalog, provider)
  const requested = /\/models\/(.+)$/u.exec(path)?.[1]
  if (requested !== undefined) {
    const name = decodeURIComponent(requested)
    return [...vendors].some((vendor) => catalog.priced(vendor, name) !== undefined)
      ? { status: 200, value: modelOf(dialect, provider, name) }
      : { status: 404, value: unknownModel(dialect, name) }
  }
  const names = catalog.tokenModels
    .filter(({ vendor }) => vendors.has(vendor))
    .map(({ model }) => model)
  return { status: 200, value: listOf(dialect, provider, names) }
}

const listOf = (dialect: Dialect, provider: Provider, names: ReadonlyArray<string>): unknown => {
  const data = names.map((name) => modelOf(dialect, provider, name))
  switch (dialect) {
    case "anthropic":
      return { data, has_more: false, first_id: names[0] ?? null, last_id: names.at(-1) ?? null }
    case "gemini":
      return { models: data }
    case "openai":
      return provider === "together" ? data : { object: "list", data }
  }
}

/** What Mistral's client requires of a model in addition. */
const mistralModel = { type: "base", capabilities: { completion_chat: true } }

const modelOf = (dialect: Dialect, provider: Provider, name: string): unknown => {
  switch (dialect) {
    case "anthropic":
      return { type: "model", id: name, display_name: name, created_at: createdAt }
    case "gemini":
      return {
        name: `models/${name}`,
        displayName: name,
        supportedGenerationMethods: ["generateContent", "countTokens"]
      }
    case "openai":
      return {
        id: name,
        object: "model",
        created: createdSeconds,
        owned_by: "simulator",
        ...(provider === "mistral" ? mistralModel : {})
      }
  }
}

/** The vendor's error for an unknown model. */
const unknownModel = (dialect: Dialect, name: string): unknown => {
  switch (dialect) {
    case "anthropic":
      return {
        type: "error",
        error: { type: "not_found_error", message: `model: ${name}` },
        request_id: "req_simulated"
      }
    case "gemini": {
      const message = `models/${name} is not found for this API version, or is not supported.`
      return { error: { code: 404, message, status: "NOT_FOUND" } }
    }
    case "openai":
      return {
        error: {
          message: `The model '${name}' does not exist or you do not have access to it.`,
          type: "invalid_request_error",
          param: "model",
          code: "model_not_found"
        }
      }
  }
}
