import type { OpenRoute } from "../../catalog/OpenRoutes.ts"
import { format } from "../../domain/Credits.ts"
import { aliasVendorOf } from "../passthrough/PassthroughTarget.ts"
import {
  endingHeaders,
  everyResponse,
  jsonContent,
  modelHeaders,
  problems,
  refTo
} from "./OpenApiParts.ts"
import type { Json } from "./OpenApiParts.ts"

/**
 * The vendors' own routes that the catalog opens, and their aliases.
 * docs/reference/passthrough.md#paths, ADR 0073.
 */
export const vendorPaths = (routes: ReadonlyArray<OpenRoute>): Json => {
  const paths: Record<string, Json> = {}
  for (const route of routes) {
    const own = `/vendors/${route.vendor}${route.path}`
    paths[own] = { ...paths[own], ...itemOf(route, `Routes of ${route.vendor}`, idOf(route)) }
    const alias = aliases.get(route.path)
    if (alias !== undefined && route.vendor === aliasVendorOf(route.path)) {
      paths[route.path] = { ...paths[route.path], ...itemOf(route, "Aliases", alias) }
    }
  }
  return paths
}

/** The aliases with the names of their operations. docs/reference/passthrough.md#aliases */
const aliases = new Map([
  ["/v1/chat/completions", "createChatCompletion"],
  ["/v1/responses", "createResponse"],
  ["/v1/embeddings", "createEmbedding"],
  ["/v1/messages", "createMessage"],
  ["/v1/messages/count_tokens", "countMessageTokens"],
  ["/v1/models", "listUpstreamModels"],
  ["/v1/models/{model}", "getUpstreamModel"]
])

const idOf = ({ method, path, vendor }: OpenRoute): string =>
  `${method.toLowerCase()}_${vendor}${path}`.replaceAll(/[^A-Za-z0-9]+/gu, "_").replace(/_$/u, "")

const itemOf = (route: OpenRoute, tag: string, operationId: string): Json => ({
  [route.method.toLowerCase()]: {
    tags: [tag],
    security: [{ bearer: [] }],
    operationId,
    summary: `${route.method} ${route.path.replace(/^\/v\d\w*/u, "")} of ${route.vendor}`,
    description: `As ${route.vendor} has it: body, response and errors are the vendor's own. ${paid(route)}`,
    parameters: [
      ...(route.path.includes("{model}") ? [refTo("parameters", "VendorModel")] : []),
      ...(isMetered(route) ? [refTo("parameters", "MaxCost")] : []),
      ...(route.method === "POST" ? [refTo("parameters", "ContentType")] : [])
    ],
    ...(route.method === "POST" ? { requestBody: bodyOf(route) } : {}),
    responses: { 200: responseOf(route), ...failuresOf(route) }
  }
})

const paid = ({ meter }: OpenRoute): string => {
  switch (meter.per) {
    case "nothing":
      return "Free."
    case "call":
      return `${format(meter.amount)} credits a call.`
    case "tokens":
      return "Paid by the token: the most that it can cost is held before, what it cost is settled after."
  }
}

const isMetered = ({ meter }: OpenRoute): boolean => meter.per !== "nothing"

const text = { type: "string" }
const list = { type: "array", items: { type: "object", additionalProperties: true } }

/** The fields of a body that the gateway reads, with an example; the others go to the vendor unread. */
const bodies: Readonly<Record<string, { readonly properties: Json; readonly example: Json }>> = {
  "openai-chat": {
    properties: { messages: list, stream: { type: "boolean" } },
    example: { model: "gpt-4o-mini", messages: [{ role: "user", content: "Hello" }] }
  },
  "openai-responses": {
    properties: { stream: { type: "boolean" } },
    example: { model: "gpt-4o-mini", input: "Hello" }
  },
  "openai-embeddings": {
    properties: {},
    example: { model: "text-embedding-3-small", input: ["Hello"] }
  },
  "anthropic-messages": {
    properties: { messages: list, max_tokens: { type: "integer" }, stream: { type: "boolean" } },
    example: {
      model: "claude-haiku-4-5",
      max_tokens: 100,
      messages: [{ role: "user", content: "Hello" }]
    }
  },
  "gemini-generate": {
    properties: { contents: list },
    example: { contents: [{ role: "user", parts: [{ text: "Hello" }] }] }
  },
  "gemini-embeddings": {
    properties: { content: { type: "object", additionalProperties: true }, requests: list },
    example: { content: { parts: [{ text: "Hello" }] } }
  }
}

const knownOf = ({ meter }: OpenRoute) =>
  meter.per === "tokens" ? bodies[meter.protocol] : undefined

/** The JSON Schema of a body: what the gateway reads of it. */
export const vendorBodySchema = (route: OpenRoute): Json => {
  const known = knownOf(route)
  const namesModel = known !== undefined && !route.path.includes("{model}")
  return {
    type: "object",
    ...(namesModel ? { required: ["model"] } : {}),
    properties: { ...(namesModel ? { model: text } : {}), ...known?.properties },
    additionalProperties: true
  }
}

const bodyOf = (route: OpenRoute): Json => ({
  required: true,
  ...jsonContent(vendorBodySchema(route), knownOf(route)?.example ?? {})
})

const responseOf = (route: OpenRoute): Json => {
  const streams = route.meter.per === "tokens" && !route.meter.protocol.endsWith("-embeddings")
  return {
    description: "The vendor's own response",
    headers: {
      ...everyResponse,
      ...(route.meter.per === "tokens" ? { ...modelHeaders, ...endingHeaders } : {}),
      ...(isMetered(route)
        ? {
            "X-Service-Cost": refTo("headers", "Cost"),
            "X-Service-Call-Id": refTo("headers", "CallId"),
            "X-Service-Budget-Remaining": refTo("headers", "BudgetRemaining")
          }
        : {})
    },
    content: {
      "application/json": { schema: { type: "object", additionalProperties: true } },
      ...(streams
        ? { "text/event-stream": { schema: { ...text, description: "The vendor's own events" } } }
        : {})
    }
  }
}

const failuresOf = (route: OpenRoute): Json => {
  const ofMethod = route.method === "POST" ? [400, 408, 413, 415] : [426]
  const withPrice = isMetered(route) ? [402] : []
  return problems(
    ...[...ofMethod, ...withPrice, 401, 403, 404, 405, 429, 431, 500, 502, 503, 504].sort(
      (a, b) => a - b
    )
  )
}

/** Components of the parameters of the vendors' routes. */
export const vendorParameters: Json = {
  VendorModel: {
    name: "model",
    in: "path",
    required: true,
    description: "The vendor's id of the model",
    schema: { ...text, pattern: "^[A-Za-z0-9._:@-]{1,128}$" }
  }
}
