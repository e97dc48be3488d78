import { Predicate } from "effect"
import type { Schema } from "effect"

/** A fault of a JSON Schema and its place. */
export interface SchemaIssue {
  readonly path: ReadonlyArray<string | number>
  readonly issue: string
}

type Keywords = Readonly<Record<string, unknown>>

/** Whether a value is a JSON object. */
export const isObject = (value: unknown): value is Keywords => Predicate.isObject(value)

const levelsMax = 24
const schemasMax = 2000
const alternativesMax = 64

const types: ReadonlyArray<unknown> = [
  "null",
  "string",
  "number",
  "integer",
  "boolean",
  "object",
  "array"
]

/**
 * Refused keywords: patterns can take exponential time, references can be circular, and the body checker has no
 * equivalent of the others. docs/vendors-as-files.md#bodies
 */
const refused: ReadonlySet<string> = new Set([
  "$defs",
  "$dynamicRef",
  "$ref",
  "contains",
  "definitions",
  "dependentRequired",
  "dependentSchemas",
  "else",
  "if",
  "not",
  "pattern",
  "patternProperties",
  "propertyNames",
  "then",
  "unevaluatedItems",
  "unevaluatedProperties"
])

const isText = (value: unknown) => typeof value === "string"
const isNumber = (value: unknown) => typeof value === "number"
const isSwitch = (value: unknown) => typeof value === "boolean"
const isCount = (value: unknown) => Number.isSafeInteger(value) && Number(value) >= 0
const isScalar = (value: unknown) =>
  value === null || [isText, isNumber, isSwitch].some((is) => is(value))
const isType = (value: unknown) =>
  types.includes(value) ||
  (Array.isArray(value) && value.length > 0 && value.every((it) => types.includes(it)))

/** What the value of each keyword must be. */
const values: Readonly<Record<string, readonly [(value: unknown) => boolean, string]>> = {
  type: [isType, `one of ${types.join(", ")}, or a list of them`],
  enum: [
    (value) => Array.isArray(value) && value.length > 0 && value.every(isScalar),
    "a list of strings, numbers, booleans or null"
  ],
  const: [isScalar, "a string, a number, a boolean or null"],
  required: [(value) => Array.isArray(value) && value.every(isText), "a list of names"],
  properties: [isObject, "an object"],
  additionalProperties: [(value) => isSwitch(value) || isObject(value), "a boolean or a schema"],
  items: [(value) => isSwitch(value) || isObject(value), "a schema"],
  minimum: [isNumber, "a number"],
  maximum: [isNumber, "a number"],
  exclusiveMinimum: [isNumber, "a number"],
  exclusiveMaximum: [isNumber, "a number"],
  multipleOf: [(value) => isNumber(value) && Number(value) > 0, "a number above 0"],
  minLength: [isCount, "a whole number"],
  maxLength: [isCount, "a whole number"],
  minItems: [isCount, "a whole number"],
  maxItems: [isCount, "a whole number"],
  minProperties: [isCount, "a whole number"],
  maxProperties: [isCount, "a whole number"],
  uniqueItems: [isSwitch, "a switch"],
  title: [isText, "a text"],
  description: [isText, "a text"]
}

const listed = ["allOf", "anyOf", "oneOf", "prefixItems"] as const

const ownFaults = (schema: Keywords, path: SchemaIssue["path"]): ReadonlyArray<SchemaIssue> =>
  Object.entries(schema).flatMap(([name, value]): ReadonlyArray<SchemaIssue> => {
    const at = [...path, name]
    if (refused.has(name)) return [{ path: at, issue: `The keyword ${name} is not supported` }]
    if (listed.some((it) => it === name)) {
      const isList = Array.isArray(value) && value.length > 0 && value.length <= alternativesMax
      return isList ? [] : [{ path: at, issue: `Expected 1 to ${alternativesMax} schemas` }]
    }
    const [isValid, expected] = Object.hasOwn(values, name) ? (values[name] ?? anything) : anything
    return isValid(value) ? [] : [{ path: at, issue: `Expected ${expected}` }]
  })

const anything = [() => true, ""] as const

/** Whether every object inherits a member of this name, so that an absent field would seem to have a value. */
export const isInherited = (name: string): boolean => name in Object.prototype

const nameFaults = (
  { properties }: Keywords,
  path: SchemaIssue["path"]
): ReadonlyArray<SchemaIssue> =>
  Object.keys(isObject(properties) ? properties : {})
    .filter(isInherited)
    .map((name) => ({
      path: [...path, "properties", name],
      issue: "A field may not have a name that every object has"
    }))

/** Faults of required fields that the schema does not allow, so that no body could be valid. */
const missingFaults = (schema: Keywords, path: SchemaIssue["path"]): ReadonlyArray<SchemaIssue> => {
  const { additionalProperties, properties, required } = schema
  if (additionalProperties !== false || !isObject(properties) || !Array.isArray(required)) return []
  return required.flatMap((name: unknown, index): ReadonlyArray<SchemaIssue> =>
    Object.hasOwn(properties, String(name))
      ? []
      : [{ path: [...path, "required", index], issue: "There is no such property" }]
  )
}

/** What checks a body would check the named properties by it, too. */
const restFaults = (
  { additionalProperties: rest, properties }: Keywords,
  path: SchemaIssue["path"]
): ReadonlyArray<SchemaIssue> =>
  isObject(rest) &&
  Object.keys(rest).length > 0 &&
  isObject(properties) &&
  Object.keys(properties).length > 0
    ? [
        {
          path: [...path, "additionalProperties"],
          issue:
            "Expected true or false beside properties: a schema for the others is not supported"
        }
      ]
    : []

const below = (schema: Keywords): ReadonlyArray<readonly [SchemaIssue["path"], unknown]> => [
  ...Object.entries(isObject(schema["properties"]) ? schema["properties"] : {}).map(
    ([name, property]) => [["properties", name], property] as const
  ),
  ...(["items", "additionalProperties"] as const)
    .filter((name) => schema[name] !== undefined && !isSwitch(schema[name]))
    .map((name) => [[name], schema[name]] as const),
  ...listed.flatMap((name) => {
    const all = schema[name]
    return (Array.isArray(all) ? all : []).map(
      (one: unknown, index) => [[name, index], one] as const
    )
  })
]

/** The number of schemas in a schema without faults, including itself. */
export const countSchemas = (schema: unknown): number =>
  isObject(schema) ? below(schema).reduce((sum, [, part]) => sum + countSchemas(part), 1) : 1

/** The faults of a schema's keywords, each with its place. Work and depth are bounded. */
export const schemaFaults = (root: Readonly<Record<string, Schema.Json>>) => {
  const faults: Array<SchemaIssue> = []
  let schemas = 0
  const visit = (schema: unknown, path: SchemaIssue["path"], level: number): void => {
    schemas += 1
    if (schemas > schemasMax) return
    if (!isObject(schema)) return void faults.push({ path, issue: "Expected a schema" })
    if (level > levelsMax) {
      return void faults.push({ path, issue: `Expected at most ${levelsMax} levels` })
    }
    faults.push(
      ...ownFaults(schema, path),
      ...nameFaults(schema, path),
      ...missingFaults(schema, path),
      ...restFaults(schema, path)
    )
    for (const [at, part] of below(schema)) visit(part, [...path, ...at], level + 1)
  }
  visit(root, [], 0)
  if (schemas > schemasMax) {
    faults.push({ path: [], issue: `Expected at most ${schemasMax} schemas` })
  }
  return faults
}
