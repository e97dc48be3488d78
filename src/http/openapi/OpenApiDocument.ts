import { OpenApi } from "effect/http-api"
import { shownEntry } from "../../catalog/AliasTargets.ts"
import type { Label } from "../../catalog/bodies/Bodies.ts"
import type { CatalogVersion } from "../../catalog/CatalogContent.ts"
import { Api } from "../../contract/Api.ts"
import { pageSizeDefault, pageSizeMax } from "../../domain/Limits.ts"
import { mcpPaths } from "../mcp/McpDocument.ts"
import { shapeParameters, shapePaths } from "../openai/ShapesDocument.ts"
import { plainName, secureName } from "../server/SessionCookies.ts"
import { pathsOf, taskComponents, taskParameters } from "./OpenApiModels.ts"
import {
  asRecord,
  bodyComponent,
  componentOf,
  eventComponents,
  headerComponents,
  problemComponent,
  problemResponses,
  problems,
  refTo,
  everyResponse
} from "./OpenApiParts.ts"
import type { Json } from "./OpenApiParts.ts"
import { servicePaths, webhooks } from "./OpenApiService.ts"
import { vendorParameters, vendorPaths } from "./OpenApiVendors.ts"

/**
 * The one document: the management API as declared, each model of the catalog with its own body,
 * the vendors' routes that the catalog opens, the service's own endpoints and the webhooks.
 * `serviceName` is part of the names of headers. ADR 0042.
 */
export const documentedApi = (catalog: CatalogVersion, serviceName = "Service") =>
  Api.annotate(OpenApi.Transform, (document) =>
    renamed(complete(asRecord(document), catalog), serviceName)
  )

const title = "Generation Gateway"
const description =
  "One address and one API key in front of many model vendors: asynchronous image and video generation, signed webhooks, a prepaid wallet."

const complete = (document: Json, catalog: CatalogVersion): Json => {
  const components = asRecord(document["components"])
  const paths = {
    ...Object.assign({}, ...[...catalog.all, ...catalog.aliases.map(shownEntry)].map(pathsOf)),
    ...vendorPaths(catalog.upstream.routes),
    ...shapePaths,
    ...mcpPaths,
    ...servicePaths,
    ...manageable(asRecord(document["paths"]))
  }
  const labels: ReadonlyArray<Label> = [...new Set(catalog.all.map(({ label }) => label))]
  return {
    ...document,
    info: { ...asRecord(document["info"]), title, description },
    servers: [{ url: "/", description: "This gateway" }],
    tags: tagsOf(paths),
    paths,
    webhooks,
    components: {
      ...components,
      securitySchemes: {
        bearer: { type: "http", scheme: "bearer", description: "An API key of the gateway" },
        session: {
          type: "apiKey",
          in: "cookie",
          name: plainName,
          description: `The cookie of a session; ${secureName} when the gateway is reached by https`
        }
      },
      headers: headerComponents,
      parameters: { ...taskParameters, ...shapeParameters, ...vendorParameters },
      responses: problemResponses(),
      schemas: {
        ...withoutInner(asRecord(components["schemas"])),
        ...eventComponents(),
        ...taskComponents,
        Problem: problemComponent,
        ...Object.fromEntries(labels.map((label) => [componentOf(label), bodyComponent(label)]))
      }
    }
  }
}

/** Clients see problems, not the encoded errors of the service. */
const withoutInner = (schemas: Json): Json =>
  Object.fromEntries(
    Object.entries(schemas).filter(
      ([name]) => name !== "ProblemEncoded" && name !== "StoreUnavailableEncoded"
    )
  )

const methods = new Set(["get", "post", "put", "patch", "delete"])

/** Adds what all operations of the management API have in common and none declares. */
const manageable = (paths: Json): Json =>
  Object.fromEntries(
    Object.entries(paths).map(([path, item]) => [
      path,
      Object.fromEntries(
        Object.entries(asRecord(item)).map(([method, operation]) => [
          method,
          methods.has(method) ? managed(path, method, asRecord(operation)) : operation
        ])
      )
    ])
  )

/** Who signs in is nobody yet. */
const openOperations = new Set(["signIn", "getService"])

const managed = (path: string, method: string, operation: Json): Json => {
  const name = String(operation["operationId"]).split(".").at(-1) ?? ""
  const hasBody = operation["requestBody"] !== undefined
  const statuses = [
    400,
    401,
    403,
    ...(path.includes("{") ? [404] : []),
    405,
    409,
    ...(hasBody ? [408, 413, 415, 422] : []),
    429,
    431,
    500,
    503
  ]
  return {
    summary: sentenceOf(name),
    ...operation,
    parameters: parametersOf(operation, method),
    security: openOperations.has(name) ? [] : [{ bearer: [] }, { session: [] }],
    tags: asTags(operation["tags"]).map(sentenceOf),
    operationId: name,
    responses: {
      ...Object.fromEntries(
        Object.entries(asRecord(operation["responses"]))
          .filter(([status]) => status.startsWith("2"))
          .map(([status, response]) => [status, { ...asRecord(response), headers: everyResponse }])
      ),
      ...problems(...statuses)
    }
  }
}

/** Every POST takes an idempotency key, every body has its type. `limit`, a text in the query, is documented as an integer. */
const parametersOf = (operation: Json, method: string): ReadonlyArray<unknown> => {
  const declared = Array.isArray(operation["parameters"]) ? operation["parameters"] : []
  return [
    ...declared
      .map(asRecord)
      .filter((parameter) => parameter["in"] !== "header")
      .map((parameter) => (parameter["name"] === "limit" ? limitParameter : parameter)),
    ...(operation["operationId"] === "tasks.listTasks" ? [refTo("parameters", "Metadata")] : []),
    ...(method === "post" ? [refTo("parameters", "IdempotencyKey")] : []),
    ...(operation["requestBody"] === undefined ? [] : [refTo("parameters", "ContentType")])
  ]
}

const limitParameter = {
  name: "limit",
  in: "query",
  required: false,
  schema: { type: "integer", minimum: 1, maximum: pageSizeMax, default: pageSizeDefault }
}

/** `listApiKeys` becomes "List api keys". */
const sentenceOf = (name: string): string => {
  const words = name.replaceAll(/([A-Z])/gu, (letter) => ` ${letter.toLowerCase()}`).trim()
  return words.charAt(0).toUpperCase() + words.slice(1)
}

const tagWords: Readonly<Record<string, string>> = {
  Gateway: "The gateway itself",
  Aliases: "Paths as OpenAI and Anthropic have them",
  Webhooks: "What is sent to webhook endpoints",
  Users: "The operator's endpoints"
}

const wordsOf = (name: string): string =>
  name.startsWith("Models of ")
    ? "Create, get and cancel tasks"
    : name.startsWith("Routes of ")
      ? "As the vendor has them: its own clients work unchanged"
      : `${name} of the caller`

const asTags = (tags: unknown): ReadonlyArray<string> =>
  Array.isArray(tags) ? tags.map(String) : []

/** Describes each used tag once. */
const tagsOf = (paths: Json): ReadonlyArray<Json> => {
  const used = Object.values(paths).flatMap((item) =>
    Object.values(asRecord(item)).flatMap((operation) => {
      return asTags(asRecord(operation)["tags"])
    })
  )
  return [...new Set([...used, "Webhooks"])].map((name) => ({
    name,
    description: tagWords[name] ?? wordsOf(name)
  }))
}

/** The headers of the service contain its name. docs/reference/configuration.md#variables */
const renamed = (document: Json, serviceName: string): Json =>
  serviceName === "Service"
    ? document
    : asRecord(JSON.parse(JSON.stringify(document).replaceAll("X-Service-", `X-${serviceName}-`)))
