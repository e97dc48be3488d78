import { Array as Arr, Result, Schema, SchemaRepresentation } from "effect"
import type { JsonSchema } from "effect"
import type { FieldFault } from "../../domain/Problem.ts"
import { metadataJsonSchema } from "../../domain/task/Metadata.ts"
import { webhookJsonSchema } from "../../domain/task/TaskWebhook.ts"
import { storableFault } from "../bodies/Fields.ts"
import { bodyParseOptions, capFaults, faultsOf, pointerOf } from "../FieldFaults.ts"
import { extentOf } from "./Expression.ts"
import { countSchemas, isObject, schemaFaults } from "./SchemaFaults.ts"
import type { SchemaIssue } from "./SchemaFaults.ts"

/** A decoded body of a described model, with the defaults of its schema. */
export type DescribedBody = Readonly<Record<string, unknown>>

const charactersMax = 64 * 1024

/** A body is checked in at most as many steps as its schema has schemas, times the values of the body. */
const checksMax = 400_000

/** Fields that the gateway adds to every body. */
const reserved: ReadonlySet<string> = new Set(["metadata", "webhook"])

/** Extracts the place from an import error, such as `at ["schema"]["properties"]["f"]`. */
const place = /\n\s*at ((?:\[(?:"(?:[^"\\]|\\.)*"|\d+)\])+)$/u

const issueOfImport = (error: unknown): SchemaIssue => {
  const text = error instanceof Error ? error.message : ""
  const keys = place.exec(text)?.[1]?.slice(1, -1).split("][") ?? []
  const path = keys
    .map((key) => String(decodeKey(key)))
    .filter((key, at) => at > 0 || key !== "schema")
  const [, keyword] = /^Cannot import JSON Schema keyword "([^"]+)"/u.exec(text) ?? []
  return {
    path,
    issue:
      keyword === undefined
        ? "These keywords cannot be combined: write them as one schema without allOf"
        : `The keyword ${keyword} is not supported`
  }
}

const decodeKey = Schema.decodeSync(Schema.fromJsonString(Schema.Json))

/**
 * Imports the keywords of draft 2020-12 that Effect can check, without patterns and references. A schema that refers to
 * itself could make checking a body exponential.
 */
const imported = (schema: JsonSchema.JsonSchema): Schema.Codec<unknown> => {
  return Schema.make(
    SchemaRepresentation.fromJsonSchemaDocument({
      dialect: "draft-2020-12",
      schema,
      definitions: {}
    }).ast
  )
}

const issueOf = (schema: Readonly<Record<string, Schema.Json>>) => {
  if (JSON.stringify(schema).length > charactersMax) {
    return `Expected at most ${charactersMax} characters`
  }
  const { properties, type } = schema
  if (type !== "object" || !isObject(properties)) {
    return "Expected the schema of an object with properties"
  }
  const own = Object.keys(properties).filter((name) => reserved.has(name))
  if (own.length > 0) {
    return own.map((name) => ({ path: ["properties", name], issue: "Every model has this field" }))
  }
  if (schema["additionalProperties"] !== false) {
    return { path: ["additionalProperties"], issue: "Expected false: unknown fields are refused" }
  }
  const faults = schemaFaults(schema)
  if (faults.length > 0) return faults
  try {
    imported(schema)
    return Object.entries(properties).flatMap(([name, property]) => defaultFaults(name, property))
  } catch (error) {
    return issueOfImport(error)
  }
}

/** Faults of a default. The default is checked like a client's value, because it is sent unchanged. */
const defaultFaults = (name: string, property: unknown): ReadonlyArray<SchemaIssue> => {
  if (!isObject(property) || !Object.hasOwn(property, "default")) return []
  const decoded = Schema.decodeUnknownResult(
    imported(property),
    bodyParseOptions
  )(property["default"])
  if (Result.isSuccess(decoded)) return []
  const [{ detail }] = faultsOf(decoded.failure.issue)
  return [{ path: ["properties", name, "default"], issue: detail }]
}

/** The body of a model as JSON Schema, draft 2020-12. docs/vendors-as-files.md#bodies */
export const BodySchema = Schema.Record(Schema.String, Schema.Json).check(
  Schema.makeFilter<Readonly<Record<string, Schema.Json>>>(issueOf)
)
export type BodySchema = typeof BodySchema.Type

interface Prepared {
  readonly decode: (input: unknown) => Result.Result<unknown, Schema.SchemaError>
  readonly defaults: ReadonlyArray<readonly [string, unknown]>
  readonly valuesMax: number
}

const prepared = new WeakMap<BodySchema, Prepared>()

/** Runs once per schema of a catalog. */
const prepare = (schema: BodySchema): Prepared => {
  const known = prepared.get(schema)
  if (known !== undefined) return known
  const properties = isObject(schema["properties"]) ? schema["properties"] : {}
  const made = {
    valuesMax: Math.floor(checksMax / countSchemas(schema)),
    decode: Schema.decodeUnknownResult(imported(schema), bodyParseOptions),
    defaults: Object.entries(properties).flatMap(([name, property]) =>
      isObject(property) && "default" in property ? [[name, property["default"]] as const] : []
    )
  }
  prepared.set(schema, made)
  return made
}

const storableFaults = (value: unknown, path: ReadonlyArray<PropertyKey>): Array<FieldFault> => {
  if (typeof value === "string") {
    const detail = storableFault(value)
    return detail === undefined ? [] : [{ pointer: pointerOf(path), detail }]
  }
  if (Array.isArray(value)) {
    return value.flatMap((item: unknown, index) => storableFaults(item, [...path, index]))
  }
  return isObject(value)
    ? Object.entries(value).flatMap(([name, member]) =>
        storableFaults(name, path).concat(storableFaults(member, [...path, name]))
      )
    : []
}

/** Decodes a body by a schema and fills in the defaults of its members, or fails with all faults. */
export const decodeDescribed = (
  schema: BodySchema,
  input: unknown
): Result.Result<DescribedBody, Arr.NonEmptyReadonlyArray<FieldFault>> => {
  const { decode, defaults, valuesMax } = prepare(schema)
  if (extentOf(input).values > valuesMax) {
    return Result.fail([{ pointer: "#", detail: `Expected at most ${valuesMax} values` }])
  }
  const decoded = decode(input)
  if (Result.isFailure(decoded)) return Result.fail(faultsOf(decoded.failure.issue))
  const faults = storableFaults(decoded.success, [])
  if (Arr.isReadonlyArrayNonEmpty(faults)) return Result.fail(capFaults(faults))
  return Result.succeed({
    ...Object.fromEntries(defaults),
    ...(isObject(decoded.success) ? decoded.success : {})
  })
}

/** The schema of a request for the OpenAPI document: the body and what a client may attach to it. */
export const requestSchemaOf = (schema: BodySchema) =>
  imported({
    ...schema,
    properties: {
      ...(isObject(schema["properties"]) ? schema["properties"] : {}),
      metadata: metadataJsonSchema,
      webhook: webhookJsonSchema
    }
  })
