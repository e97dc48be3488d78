import type { CatalogEntry } from "./CatalogEntry.ts"
import { serves } from "./OpenRoutes.ts"
import type { OpenRoute, TokenModel, UsageProtocol } from "./OpenRoutes.ts"
import { routeAliases } from "./RouteAliases.ts"

const dialects: Readonly<Record<UsageProtocol, string>> = {
  "openai-chat": "OpenAI Chat Completions",
  "openai-responses": "OpenAI Responses",
  "openai-embeddings": "OpenAI Embeddings",
  "openai-speech": "OpenAI Speech",
  "openai-transcription": "OpenAI Transcriptions",
  rerank: "Rerank",
  "anthropic-messages": "Anthropic Messages",
  "gemini-generate": "Gemini generateContent",
  "gemini-embeddings": "Gemini embedContent"
}

/** The dialect of a model and the path to use, from the first matching route of its vendor. */
export const dialectOf = (
  routes: ReadonlyArray<OpenRoute>,
  model: TokenModel,
  name: string
): string | undefined => {
  const { vendor } = model
  for (const route of routes) {
    const { meter, path } = route
    if (meter.per !== "tokens" || !serves(route, model)) continue
    const short = routeAliases.get(path) === vendor
    const shown = short ? path : `/vendors/${vendor}${path.replace("{model}", name)}`
    return `${name} speaks ${dialects[meter.protocol]}: use ${shown}`
  }
  return undefined
}

/** The path that serves a model's tasks in OpenAI's form, or else the model's own path. */
export const taskRouteOf = (
  { action, result }: Pick<CatalogEntry, "action" | "result">,
  name: string,
  ownPath: string
): string => {
  const shapes = {
    images: action === "edit" ? "/v1/images/edits" : "/v1/images/generations",
    videos: "/v1/videos",
    audios: ownPath,
    meshes: ownPath,
    documents: ownPath
  }
  return `${name} makes ${result}: use ${shapes[result]}`
}
