import { Schema } from "effect"
import { jsonSchemaOf } from "../../catalog/bodies/Bodies.ts"
import type { Label } from "../../catalog/bodies/Bodies.ts"
import { EventEnvelope } from "../../domain/Event.ts"
import { metadataJsonSchema } from "../../domain/Metadata.ts"
import { isFinal, problemCodes } from "../../domain/Problem.ts"
import { TaskStatus } from "../../domain/Task.ts"

export type Json = Record<string, unknown>

export const asRecord = (value: unknown): Json =>
  typeof value === "object" && value !== null ? { ...value } : {}

export const refTo = (kind: "schemas" | "headers" | "parameters" | "responses", name: string) => ({
  $ref: `#/components/${kind}/${name}`
})

export const jsonContent = (schema: unknown, example?: unknown) => ({
  content: { "application/json": { schema, ...(example === undefined ? {} : { example }) } }
})

/** `text-to-image-max` has the component `TextToImageMax`. */
export const componentOf = (label: Label): string =>
  label
    .split("-")
    .map((word) => word.charAt(0).toUpperCase() + word.slice(1))
    .join("")

export const bodyComponent = (label: Label): Json => {
  const schema = asRecord(JSON.parse(JSON.stringify(jsonSchemaOf(label)), simplified))
  return {
    ...schema,
    properties: { ...asRecord(schema["properties"]), metadata: metadataJsonSchema },
    title: componentOf(label)
  }
}

/** Replaces an `anyOf` with one member by that member; an enumeration of integers is one. */
const simplified = (_key: string, value: unknown): unknown => {
  const { anyOf, ...rest } = asRecord(value)
  if (Array.isArray(anyOf) && anyOf.length === 1) return { ...rest, ...asRecord(anyOf[0]) }
  const values = rest["enum"]
  return rest["type"] === "number" && Array.isArray(values) && values.every(Number.isInteger)
    ? { ...rest, type: "integer" }
    : value
}

/** Components of the events and of the task that they contain. */
export const eventComponents = (): Json => {
  const { definitions } = Schema.toJsonSchemaDocument(EventEnvelope, {
    onExcessProperty: "ignore",
    generateDescriptions: false
  })
  return asRecord(
    JSON.parse(JSON.stringify(definitions).replaceAll("#/$defs/", "#/components/schemas/"))
  )
}

/**
 * RFC 9457 with codes; `error` on the routes that the SDKs of OpenAI, Anthropic and Google call.
 * docs/reference/errors.md#problem-body
 */
export const problemComponent: Json = {
  type: "object",
  description: "RFC 9457, with a code of its own. Each code is explained at its `type`",
  required: ["type", "title", "status", "detail", "instance", "code"],
  properties: {
    type: {
      type: "string",
      format: "uri-reference",
      description: "The explanation of the code; on Anthropic's routes `error`"
    },
    title: { type: "string" },
    status: { type: "integer", minimum: 400, maximum: 599 },
    detail: { type: "string" },
    instance: { type: "string", format: "uri-reference" },
    code: { type: "integer", enum: Object.keys(problemCodes).map(Number) },
    errors: {
      type: "array",
      description: "Every fault of the request, with code 2001",
      items: {
        type: "object",
        required: ["pointer", "detail"],
        properties: { pointer: { type: "string" }, detail: { type: "string" } }
      }
    },
    remaining: {
      type: "string",
      description: "Credits that the spend limit of the API key leaves, with code 1102"
    },
    task: {
      type: "object",
      description: "With the codes 2017 to 2019: the task, which exists",
      required: ["id", "url", "status"],
      properties: {
        id: { type: "string", format: "uuid" },
        url: { type: "string", format: "uri" },
        status: { type: "string", enum: TaskStatus.literals },
        error: refTo("schemas", "TaskError")
      }
    },
    error: {
      type: "object",
      description:
        "On the routes of OpenAI (`message`, `type`, `param`, `code`), Anthropic (`message`, `type`) and Google (`message`, `code`, `status`), as their own clients read it",
      required: ["message"],
      properties: {
        message: { type: "string" },
        type: { type: "string" },
        param: { type: ["string", "null"] },
        code: { type: ["string", "integer"] },
        status: { type: "string" }
      }
    },
    request_id: {
      type: "string",
      description: "On Anthropic's routes only: the trace id of the request"
    }
  }
}

const textHeader = (description: string, example: string) => ({
  description,
  schema: { type: "string", examples: [example] }
})

/** Headers of responses; those of the service contain its name. */
export const headerComponents: Json = {
  Traceparent: textHeader(
    "W3C trace context of the request: quote it when reporting a problem",
    "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
  ),
  Cost: textHeader("Credits held, later settled, with two decimals", "7.50"),
  CallId: textHeader(
    "The receipt of the call: `/manage/v1/calls/{id}`",
    "01a1fde8-21f4-7d82-8c09-ff1738b15d2e"
  ),
  Balance: textHeader("Credits available after the hold, with two decimals", "992.50"),
  BudgetRemaining: textHeader(
    "Credits that the spend limit of the API key leaves after the hold; absent without a limit",
    "12.50"
  ),
  Model: textHeader(
    "Of an alias: the model that did it, as vendor/model",
    "dashscope/text-to-image-max"
  ),
  Skipped: textHeader(
    "Of an alias: the models that were passed over, and why (RFC 9651)",
    '"fal/flux-dev";reason=rate_limited'
  ),
  Sandbox: textHeader("Present when the response comes from the simulator", "true"),
  IdempotencyReplayed: textHeader("Present when this is the first response again", "true"),
  PreferenceApplied: textHeader("The preference that was honoured", "wait=30"),
  Deprecation: textHeader(
    "Of a model that its vendor ends: since when it is advised against (RFC 9745)",
    "@1795305600"
  ),
  Sunset: textHeader(
    "Of a model that its vendor ends: when (RFC 8594)",
    "Fri, 11 Dec 2026 00:00:00 GMT"
  ),
  ETag: textHeader("Identifies this response, for `If-None-Match`", '"abc"'),
  RetryAfter: {
    description: "Seconds to wait before the next request",
    schema: { type: "integer", minimum: 0 }
  },
  ShouldRetry: textHeader(
    "On the routes of OpenAI, Anthropic and Google: the same request would be refused again",
    "false"
  ),
  Allow: textHeader("The methods of the path", "GET, DELETE"),
  WWWAuthenticate: textHeader("How to authenticate", "Bearer")
}

/** Headers of every response. docs/reference/http.md#every-response */
export const everyResponse = {
  Traceparent: refTo("headers", "Traceparent"),
  "X-Service-Sandbox": refTo("headers", "Sandbox")
}

/** Headers of an alias. docs/reference/aliases.md#who-did-it */
export const modelHeaders = {
  "X-Service-Model": refTo("headers", "Model"),
  "X-Service-Skipped": refTo("headers", "Skipped")
}

/** Headers of a model that its vendor ends. docs/catalog.md#models-that-end */
export const endingHeaders = {
  Deprecation: refTo("headers", "Deprecation"),
  Sunset: refTo("headers", "Sunset")
}

/** Headers that only problems with this status have. */
const extraHeaders: Readonly<Record<number, Json>> = {
  401: { "WWW-Authenticate": refTo("headers", "WWWAuthenticate") },
  402: { "Retry-After": refTo("headers", "RetryAfter") },
  405: { Allow: refTo("headers", "Allow") },
  429: { "Retry-After": refTo("headers", "RetryAfter") },
  503: { "Retry-After": refTo("headers", "RetryAfter") }
}

const codesOf = (status: number) =>
  Object.entries(problemCodes).filter(
    ([, problem]) =>
      problem.status === status || ("forbidden" in problem && problem.forbidden === status)
  )

const statuses = [...new Set(Object.values(problemCodes).map(({ status }) => status))]

/** One response for each status, with its codes and one of them as the example. */
export const problemResponses = (): Json =>
  Object.fromEntries(
    statuses.map((status) => {
      const codes = codesOf(status)
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
      return [
        `Problem${status}`,
        {
          description: codes.map(([code, { title }]) => `${code}: ${title}`).join("; "),
          headers: {
            ...everyResponse,
            ...extraHeaders[status],
            ...(isFinal(status) ? { "X-Should-Retry": refTo("headers", "ShouldRetry") } : {})
          },
          content: {
            "application/problem+json": { schema: refTo("schemas", "Problem"), example }
          }
        }
      ]
    })
  )

/** The problem responses of an operation, by status. */
export const problems = (...statuses: ReadonlyArray<number>): Json =>
  Object.fromEntries(
    statuses.map((status) => [String(status), refTo("responses", `Problem${status}`)])
  )
