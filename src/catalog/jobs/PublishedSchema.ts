import type { Schema } from "effect"
import { at } from "../../domain/json/Json.ts"
import { isInherited, isObject } from "./SchemaFaults.ts"

/** A JSON object of a published document. */
export type JsonObject = Readonly<Record<string, unknown>>

/** Why a published schema cannot be imported. */
export class Unreadable extends Error {}

const documentDepthMax = 100
const depthMax = 16
const schemasMax = 3000
const alternativesMax = 16
const descriptionUnitsMax = 300
const defaultCharactersMax = 2000

const referencePrefix = "#/components/schemas/"

/** Deeper values would overflow the stack of code that reads them. */
const checkDepth = (document: unknown): void => {
  let level: ReadonlyArray<unknown> = [document]
  for (let depth = 0; level.length > 0; depth += 1) {
    if (depth > documentDepthMax) {
      throw new Unreadable(`it is nested more than ${documentDepthMax} levels deep`)
    }
    level = level.flatMap((value) =>
      typeof value === "object" && value !== null ? Object.values(value) : []
    )
  }
}

export const listOf = (value: unknown): ReadonlyArray<unknown> =>
  Array.isArray(value) ? value.slice(0, alternativesMax) : []

/** A schema with its references resolved, and the references that led to it. */
export interface Resolved {
  readonly schema: JsonObject
  readonly trail: ReadonlyArray<string>
}

/** A schema in the subset of JSON Schema that a body may use. docs/vendors-as-files.md#bodies */
export type Written = Readonly<Record<string, Schema.Json>>

/** The schemas of an OpenAPI document. The work is counted, because short schemas can refer to many others. */
export class PublishedSchemas {
  readonly #definitions: unknown
  #schemas = 0

  constructor(document: unknown) {
    checkDepth(document)
    this.#definitions = at(document, "components", "schemas")
  }

  /** Resolves the reference of a schema and merges its `allOf`. */
  resolve(schema: unknown, trail: ReadonlyArray<string> = []): Resolved {
    this.#schemas += 1
    if (this.#schemas > schemasMax) throw new Unreadable(`it has more than ${schemasMax} schemas`)
    if (!isObject(schema)) throw new Unreadable("it has a part that is not a schema")
    const { $ref, allOf, ...own } = schema
    const referred = $ref === undefined ? [] : [this.#referred($ref, trail)]
    const parts = [...referred, ...listOf(allOf).map((part) => this.resolve(part, trail))]
    return {
      schema: [...parts.map((part) => part.schema), own].reduce(merged),
      trail: [...new Set([...trail, ...parts.flatMap((part) => part.trail)])]
    }
  }

  #referred($ref: unknown, trail: ReadonlyArray<string>): Resolved {
    const name = String($ref).slice(0, 200)
    if (trail.includes(name)) throw new Unreadable(`it refers to itself by ${name}`)
    const target = name.startsWith(referencePrefix)
      ? at(this.#definitions, name.slice(referencePrefix.length))
      : undefined
    if (target === undefined) throw new Unreadable(`it refers to ${name}, which does not exist`)
    return this.resolve(target, [...trail, name])
  }

  /** Rewrites a schema in the subset for bodies. Keywords outside it are left out, and the vendor checks them. */
  write(schema: unknown, trail: ReadonlyArray<string> = [], depth = 0): Written {
    if (depth > depthMax) throw new Unreadable(`it has more than ${depthMax} levels`)
    const resolved = this.resolve(schema, trail)
    const whole = resolved.schema
    const below = resolved.trail
    const notes = annotationsOf(whole)
    const choices = [...listOf(whole["anyOf"]), ...listOf(whole["oneOf"])]
    if (choices.length > 0) {
      const made = distinct(choices.map((it) => this.write(it, below, depth + 1)))
      const [only] = made
      return only !== undefined && made.length === 1
        ? { ...only, ...notes }
        : { anyOf: made, ...notes }
    }
    const rules = { ...rulesIn(whole), ...this.#partsOf(whole, below, depth + 1) }
    return whole["nullable"] === true
      ? { anyOf: [rules, { type: "null" }], ...notes }
      : { ...rules, ...notes }
  }

  #partsOf(
    { additionalProperties, items, properties, required }: JsonObject,
    trail: ReadonlyArray<string>,
    depth: number
  ): Written {
    const names = isObject(properties) ? Object.keys(properties).filter(isFieldName) : []
    return {
      ...(isObject(items) ? { items: this.write(items, trail, depth) } : {}),
      ...(isObject(properties)
        ? {
            properties: Object.fromEntries(
              names.map((name) => [name, this.write(properties[name], trail, depth)])
            ),
            required: names.filter((name) => Array.isArray(required) && required.includes(name))
          }
        : {}),
      ...(additionalProperties === false ? { additionalProperties } : {}),
      ...(isObject(additionalProperties) &&
      Object.keys(additionalProperties).length > 0 &&
      names.length === 0
        ? { additionalProperties: this.write(additionalProperties, trail, depth) }
        : {})
    }
  }
}

/** Whether a name can be a vendor's field name. */
export const isFieldName = (name: string): boolean =>
  /^[A-Za-z_][\w.-]{0,63}$/u.test(name) && !isInherited(name)

const distinct = (all: ReadonlyArray<Written>): ReadonlyArray<Written> => [
  ...new Map(all.map((it) => [JSON.stringify(it), it])).values()
]

const merged = (first: JsonObject, second: JsonObject): JsonObject => {
  const [fields, more] = [first["properties"], second["properties"]]
  const [needed, also] = [first["required"], second["required"]]
  return {
    ...first,
    ...second,
    ...(isObject(fields) && isObject(more) ? { properties: { ...fields, ...more } } : {}),
    ...(Array.isArray(needed) && Array.isArray(also) ? { required: [...needed, ...also] } : {})
  }
}

const isScalar = (value: unknown): value is string | number | boolean | null =>
  value === null || ["string", "number", "boolean"].includes(typeof value)

const types: ReadonlySet<unknown> = new Set([
  "null",
  "string",
  "number",
  "integer",
  "boolean",
  "object",
  "array"
])

const sizes = ["minLength", "maxLength", "minItems", "maxItems"] as const

const isSize = (value: unknown): value is number =>
  typeof value === "number" && Number.isSafeInteger(value) && value >= 0

const rulesIn = (schema: JsonObject): Written => {
  const { const: only, enum: values, format, multipleOf, type } = schema
  const names = [type]
    .flat()
    .filter((name) => types.has(name))
    .map(String)
  const [name] = names
  return {
    ...(name === undefined ? {} : { type: names.length === 1 ? name : names }),
    ...(Array.isArray(values) && values.length > 0 && values.every(isScalar)
      ? { enum: values }
      : {}),
    ...(only !== undefined && isScalar(only) ? { const: only } : {}),
    ...(format === "uri" ? { format } : {}),
    ...boundsIn(schema),
    ...(typeof multipleOf === "number" && multipleOf > 0 ? { multipleOf } : {}),
    ...Object.fromEntries(
      sizes.flatMap((size) => {
        const value = schema[size]
        return isSize(value) ? [[size, value]] : []
      })
    )
  }
}

/** OpenAPI 3.0 writes `exclusiveMinimum: true` next to `minimum`. */
const boundsIn = (schema: JsonObject): Written =>
  Object.fromEntries(
    (
      [
        ["minimum", "exclusiveMinimum"],
        ["maximum", "exclusiveMaximum"]
      ] as const
    ).flatMap(([bound, exclusive]): ReadonlyArray<[string, number]> => {
      const value = schema[bound]
      const beyond = schema[exclusive]
      if (typeof value === "number") return [[beyond === true ? exclusive : bound, value]]
      return typeof beyond === "number" ? [[exclusive, beyond]] : []
    })
  )

const isJson = (value: unknown): value is Schema.Json =>
  isScalar(value) || (typeof value === "object" && value !== null)

const annotationsOf = ({ default: value, description }: JsonObject): Written => {
  const text = typeof description === "string" ? description.replaceAll(/\s+/gu, " ").trim() : ""
  const isKept =
    isJson(value) && value !== null && JSON.stringify(value).length <= defaultCharactersMax
  return {
    ...(text === "" ? {} : { description: text.slice(0, descriptionUnitsMax).toWellFormed() }),
    ...(isKept ? { default: value } : {})
  }
}
