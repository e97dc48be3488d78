import { Schema } from "effect"
import { OpenApi } from "effect/http-api"
import type { CatalogVersion } from "../../catalog/CatalogContent.ts"
import { asRecord } from "../../contract/Documented.ts"
import { gatewayApi } from "../../contract/GatewayApi.ts"
import { requestHeaders, responseHeaders } from "../../contract/Headers.ts"
import type { ResponseHeader } from "../../contract/Headers.ts"
import { isFinal, problemCodes } from "../../domain/Problem.ts"
import { version } from "../../domain/Version.ts"
import { plainName, secureName } from "../server/access/SessionCookies.ts"

type Json = Record<string, unknown>

/**
 * The contract as an OpenAPI document, completed with what all operations share but none declares: response headers,
 * problems as components, statuses and tags of the management API. `serviceName` is part of header names. ADR 0042
 */
export const documentedApi = (catalog: CatalogVersion, serviceName = "Service") =>
  gatewayApi(catalog).annotateMerge(
    OpenApi.annotations({
      title: "Generation Gateway",
      version,
      description:
        "One address and one API key in front of many model vendors: asynchronous image and video generation, signed webhooks, a prepaid wallet.",
      servers: [{ url: "/", description: "This gateway" }],
      transform: (document) => renamed(complete(document), serviceName)
    })
  )

const complete = (compiled: unknown): Json => {
  const document = asRecord(
    JSON.parse(JSON.stringify(compiled), (_key, value: unknown) => simplified(value))
  )
  const schemas = picked(
    asRecord(asRecord(document["components"])["schemas"]),
    // Removes the separate schemas of each status, and the service's internal errors
    (name) => !/^(?:Problem_\d+|\w+Encoded)$/u.test(name)
  )
  const operations = mapped(document["paths"], (item, path) =>
    mapped(item, (operation, method) => shown(asRecord(operation), method, path))
  )
  const paths = picked(operations, (path) => !isEvent(path))
  const webhooks = Object.fromEntries(
    Object.entries(operations).flatMap(([path, item]) =>
      isEvent(path) ? [[path.slice(1), item]] : []
    )
  )
  const open = schemasIn(schemas, [
    webhooks,
    responsesIn(picked(paths, (path) => !isManaged(path))),
    { $ref: "#/components/schemas/Problem" }
  ])
  return {
    ...document,
    tags: tagsOf(document["tags"]),
    paths: mapped(paths, (item, path) => (isManaged(path) ? item : withOpenResponses(item))),
    webhooks,
    components: {
      securitySchemes: {
        bearer: { type: "http", scheme: "bearer", description: "An API key of the gateway" },
        session: {
          type: "apiKey",
          in: "cookie",
          name: plainName,
          description: `The cookie of a session; ${secureName} when the gateway is reached by https`
        }
      },
      headers: headerComponents(),
      responses: errorResponses(paths),
      schemas: mapped(schemas, (schema, name) => (open.has(name) ? opened(schema) : schema))
    }
  }
}

const mapped = (record: unknown, f: (value: unknown, key: string) => unknown): Json =>
  Object.fromEntries(Object.entries(asRecord(record)).map(([key, value]) => [key, f(value, key)]))

const picked = (record: Json, isWanted: (key: string) => boolean): Json =>
  Object.fromEntries(Object.entries(record).filter(([key]) => isWanted(key)))

const asList = (value: unknown): ReadonlyArray<unknown> => (Array.isArray(value) ? value : [])

/**
 * Inlines an `anyOf` or `allOf` with a single member (a check makes an `allOf`) and marks enumerations of integers as
 * integers. An array of anything gets empty `items`, because client generators require them.
 */
const simplified = (value: unknown): unknown => {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return value
  const { allOf, anyOf, ...rest } = asRecord(value)
  const one = [allOf, anyOf].find((members) => Array.isArray(members) && members.length === 1)
  if (one !== undefined) return simplified({ ...rest, ...asRecord(asList(one)[0]) })
  if (
    rest["type"] === "array" &&
    rest["items"] === undefined &&
    rest["prefixItems"] === undefined
  ) {
    return { ...asRecord(value), items: {} }
  }
  return rest["type"] === "number" && asList(rest["enum"]).some(Number.isInteger)
    ? { ...rest, type: "integer" }
    : value
}

/** Whether `ManageGate` protects the route. */
const isManaged = (path: string): boolean =>
  path.startsWith("/manage/v1/") && !/\/(?:oidc|task-batches)(?:\/|$)/u.test(path)

const isEvent = (path: string): boolean =>
  /^\/(?:task|task_batch|balance|webhook|key)\.[a-z]+$/u.test(path)

const shown = (operation: Json, method: string, path: string): Json => {
  if (isEvent(path)) {
    const { parameters, responses, ...rest } = operation
    const told = picked(asRecord(responses), (status) => status.endsWith("XX"))
    return { ...rest, parameters: asList(parameters).map(parameterOf), responses: told }
  }
  const { isRelayed, ...declared } = operation
  const common = isManaged(path) ? managed(declared, method, path) : declared
  return {
    ...common,
    parameters: asList(common["parameters"]).map(parameterOf),
    responses: mapped(common["responses"], (response, status) =>
      responseOf(response, status, isRelayed === true ? "Relayed" : "Problem")
    )
  }
}

/** Operations that are 404 without a session, or at an address without passkeys. */
const operationsOfSessions = new Set([
  "getSession",
  "signOut",
  "changePassword",
  "signIn",
  "getPasskeySignIn",
  "getPasskeyCreation",
  "createPasskey"
])

/** Operations without authentication. */
const openOperations = new Set(["signIn", "getService"])

/**
 * Adds what all operations of the management API share: `ManageGate` reads these headers and returns these problems.
 */
const managed = (operation: Json, method: string, path: string): Json => {
  const name = String(operation["operationId"]).split(".").at(-1) ?? ""
  const hasBody = operation["requestBody"] !== undefined
  const problems = [400, 401, 403, 405, 409, 429, 431, 500, 503].concat(
    path.includes("{") || operationsOfSessions.has(name) ? 404 : [],
    hasBody ? [408, 413, 415] : [],
    // 422 for an idempotency key that was used with another request
    hasBody || method === "post" ? 422 : []
  )
  return {
    summary: sentenceOf(name),
    ...operation,
    parameters: [
      ...asList(operation["parameters"]).filter((it) => asRecord(it)["in"] !== "header"),
      ...(name === "listTasks" ? [metadataParameter] : []),
      ...(method === "post" ? [headerParameter("Idempotency-Key")] : [])
    ],
    security: openOperations.has(name) ? [] : [{ bearer: [] }, { session: [] }],
    tags: asList(operation["tags"]).map(sentenceOf),
    operationId: name,
    responses: {
      ...picked(asRecord(operation["responses"]), (status) => status.startsWith("2")),
      ...Object.fromEntries(problems.map((status) => [status, {}]))
    }
  }
}

const metadataParameter = {
  name: "metadata",
  in: "query",
  required: false,
  style: "deepObject",
  explode: true,
  schema: {
    type: "object",
    description: "`metadata[key]=value`, of several all",
    additionalProperties: { type: "string" }
  }
}

/** The types that texts in the query represent. */
const queryTypes: Readonly<Record<string, Json>> = {
  integer: { type: "integer" },
  boolean: { type: "boolean", default: false }
}

/** Moves the description of a parameter from its schema to the parameter. */
const parameterOf = (parameter: unknown): Json => {
  const { schema, ...it } = asRecord(parameter)
  const { description, ...declared } = asRecord(schema)
  const { enum: _, format, ...rest } = declared
  const type = queryTypes[String(format)]
  return {
    ...it,
    ...(description === undefined ? {} : { description }),
    schema: type === undefined ? declared : { ...rest, ...type }
  }
}

const headerSchemas = (headers: Schema.Struct.Fields): Json =>
  asRecord(
    Schema.toJsonSchemaDocument(Schema.Struct(headers), { generateDescriptions: false }).schema[
      "properties"
    ]
  )

const headerParameter = (name: keyof typeof requestHeaders): Json => ({
  name,
  in: "header",
  required: false,
  schema: headerSchemas(requestHeaders)[name]
})

/** The component of a header: `X-Service-Cost` has `Cost`. */
const componentOf = (header: string): string =>
  header.replace(/^X-(?:Service-)?/u, "").replaceAll("-", "")

const headerComponents = (): Json =>
  Object.fromEntries(
    Object.entries(headerSchemas(responseHeaders)).map(([name, schema]) => {
      const { description, ...declared } = asRecord(schema)
      return [componentOf(name), { description, schema: declared }]
    })
  )

const referTo = (...names: ReadonlyArray<ResponseHeader>): Json =>
  Object.fromEntries(
    names.map((name) => [name, { $ref: `#/components/headers/${componentOf(name)}` }])
  )

const headerNames = new Map(
  Object.keys(responseHeaders).map((name) => [name.toLowerCase(), name] as const)
)

const responseOf = (response: unknown, status: string, error: "Problem" | "Relayed"): Json => {
  if (Number(status) >= 400) return { $ref: `#/components/responses/${error}${status}` }
  const { headers, ...it } = asRecord(response)
  const own = Object.keys(asRecord(headers)).map((name) => headerNames.get(name) ?? name)
  return {
    ...it,
    headers: {
      ...referTo("Traceparent", "X-Service-Sandbox"),
      ...Object.fromEntries(
        own.map((name) => [name, { $ref: `#/components/headers/${componentOf(name)}` }])
      )
    }
  }
}

/** Headers that only problems with these statuses have. */
const headersOfStatus: Readonly<Record<number, Json>> = {
  401: referTo("WWW-Authenticate"),
  402: referTo("Retry-After"),
  405: referTo("Allow"),
  429: referTo("Retry-After"),
  503: referTo("Retry-After")
}

/** One response per status, with its codes and one of its problems as the example. */
const problemResponses = (): Json => {
  const known = Object.entries(problemCodes)
  const statuses = [...new Set(known.map(([, { status }]) => status))]
  return Object.fromEntries(
    statuses.map((status) => {
      const codes = known.filter(
        ([, it]) => it.status === status || ("forbidden" in it && it.forbidden === status)
      )
      const [code = "5000", first] = codes[0] ?? []
      const title = first?.title ?? ""
      const example = {
        type: `/docs/errors#${code}`,
        title,
        status,
        detail: title,
        instance: "/the/path",
        code: Number(code)
      }
      const schema = { $ref: "#/components/schemas/Problem" }
      return [
        `Problem${status}`,
        {
          description: codes.map(([code, { title }]) => `${code}: ${title}`).join("; "),
          headers: {
            ...referTo("Traceparent", "X-Service-Sandbox"),
            ...headersOfStatus[status],
            ...(isFinal(status) ? referTo("X-Should-Retry") : {})
          },
          content: { "application/problem+json": { schema, example } }
        }
      ]
    })
  )
}

/** The errors that operations refer to; where a vendor's own errors pass, a response may be one of them. */
const errorResponses = (paths: Json): Json => {
  const problems = problemResponses()
  const relayed = Object.entries(problems).map(([name, problem]) => {
    const { content, description, ...rest } = asRecord(problem)
    return [
      name.replace("Problem", "Relayed"),
      {
        ...rest,
        description: `${String(description)}; or the vendor's own error`,
        content: { ...asRecord(content), "application/json": { schema: {} } }
      }
    ] as const
  })
  const used = JSON.stringify(responsesIn(paths))
  return picked({ ...problems, ...Object.fromEntries(relayed) }, (name) =>
    used.includes(`#/components/responses/${name}"`)
  )
}

/**
 * Allows additional members: responses to model requests, problems and events may gain some. The management API
 * declares all of its members.
 */
const opened = (schema: unknown): unknown =>
  JSON.parse(JSON.stringify(schema), (key: string, value: unknown) =>
    key === "additionalProperties" && value === false ? undefined : value
  )

const withOpenResponses = (item: unknown): Json =>
  mapped(item, (operation) => ({
    ...asRecord(operation),
    responses: opened(asRecord(operation)["responses"])
  }))

const responsesIn = (paths: Json): ReadonlyArray<unknown> =>
  Object.values(paths).flatMap((item) =>
    Object.values(asRecord(item)).map((operation) => asRecord(operation)["responses"])
  )

/** The components that a part of the document uses, directly or indirectly. */
const schemasIn = (schemas: Json, part: unknown, found = new Set<string>()): Set<string> => {
  for (const [, name = ""] of JSON.stringify(part).matchAll(/#\/components\/schemas\/(\w+)/gu)) {
    if (found.has(name)) continue
    found.add(name)
    schemasIn(schemas, schemas[name] ?? {}, found)
  }
  return found
}

/** `listApiKeys` becomes "List api keys". */
const sentenceOf = (name: unknown): string => {
  const words = String(name)
    .replaceAll(/([A-Z])/gu, (letter) => ` ${letter.toLowerCase()}`)
    .trim()
  return words.charAt(0).toUpperCase() + words.slice(1)
}

/** Each tag once. Groups of the management API are described by whom they serve. */
const tagsOf = (declared: unknown): ReadonlyArray<Json> => {
  const tags = asList(declared).map((it) => {
    const { description, name } = asRecord(it)
    if (description !== undefined) return [String(name), String(description)] as const
    const tag = sentenceOf(name)
    return [tag, tag === "Users" ? "The operator's endpoints" : `${tag} of the caller`] as const
  })
  return [...new Map(tags)].map(([name, description]) => ({ name, description }))
}

/** Replaces the service's name in headers. docs/reference/configuration.md#variables */
const renamed = (document: Json, serviceName: string): Json =>
  serviceName === "Service"
    ? document
    : asRecord(JSON.parse(JSON.stringify(document).replaceAll("X-Service-", `X-${serviceName}-`)))
