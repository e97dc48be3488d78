import type { CatalogEntry } from "./CatalogEntry.ts"
import type { OpenRoute, TokenModel, UsageProtocol } from "./OpenRoutes.ts"
import { routeAliases } from "./RouteAliases.ts"

const dialects: Readonly<Record<UsageProtocol, string>> = {
  "openai-chat": "OpenAI Chat Completions",
  "openai-responses": "OpenAI Responses",
  "openai-embeddings": "OpenAI Embeddings",
  "anthropic-messages": "Anthropic Messages",
  "gemini-generate": "Gemini generateContent",
  "gemini-embeddings": "Gemini embedContent"
}

/** The dialect of a model, and the path to use: the first matching route of its vendor. */
export const dialectOf = (
  routes: ReadonlyArray<OpenRoute>,
  { outputTokensMax, vendor }: TokenModel,
  name: string
): string | undefined => {
  for (const { meter, path, vendor: owner } of routes) {
    if (owner !== vendor || meter.per !== "tokens") continue
    if (meter.protocol.endsWith("-embeddings") !== (outputTokensMax === 0)) continue
    const short = routeAliases.get(path) === vendor
    const shown = short ? path : `/vendors/${vendor}${path.replace("{model}", name)}`
    return `${name} speaks ${dialects[meter.protocol]}: use ${shown}`
  }
  return undefined
}

/** The path that serves a model of tasks in OpenAI's shape, or else its own. */
export const taskRouteOf = (
  { action, result }: Pick<CatalogEntry, "action" | "result">,
  name: string,
  ownPath: string
): string => {
  const shapes = {
    images: action === "edit" ? "/v1/images/edits" : "/v1/images/generations",
    videos: "/v1/videos",
    audios: ownPath
  }
  return `${name} makes ${result}: use ${shapes[result]}`
}
