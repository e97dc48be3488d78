import { Predicate } from "effect"
import { at } from "../domain/json/Json.ts"

export const listOf = (value: unknown): ReadonlyArray<unknown> =>
  Array.isArray(value) ? value : []

export const textsOf = (value: unknown): ReadonlyArray<string> =>
  listOf(value).filter((it) => typeof it === "string")

const typeNames = new Set(["null", "boolean", "integer", "number", "string", "array", "object"])

/** The types that all schemas allow, `null` last; `undefined` if no schema names a type. */
export const typesOf = (schemas: ReadonlyArray<unknown>): ReadonlyArray<string> | undefined => {
  let types: ReadonlyArray<string> | undefined
  for (const schema of schemas) {
    const named = [at(schema, "type") ?? []].flat()
    if (named.length === 0) continue
    const names = new Set(textsOf(named).map((name) => name.toLowerCase()))
    const own = [...names].filter((name) => typeNames.has(name))
    // The form of OpenAPI 3.0 and Gemini
    if (at(schema, "nullable") === true) own.push("null")
    types = types === undefined ? own : own.flatMap((type) => both(type, types ?? []))
  }
  return types?.toSorted((a, b) => Number(a === "null") - Number(b === "null"))
}

/** The intersection of a type with other types. An integer is a number. */
const both = (type: string, others: ReadonlyArray<string>): ReadonlyArray<string> => {
  if (others.includes(type)) return [type]
  if (type === "number" && others.includes("integer")) return ["integer"]
  return type === "integer" && others.includes("number") ? [type] : []
}

export const isOf = (type: string, value: unknown): boolean => {
  switch (type) {
    case "null":
      return value === null
    case "array":
      return Array.isArray(value)
    case "integer":
      return Number.isInteger(value)
    case "object":
      return Predicate.isObject(value)
    default:
      return typeof value === type
  }
}

const typical: ReadonlyArray<readonly [type: string, keyword: RegExp]> = [
  ["object", /^(?:properties|required|additionalProperties|minProperties)$/u],
  ["array", /^(?:items|prefixItems|minItems)$/u],
  ["string", /^(?:pattern|format|minLength|maxLength)$/u],
  ["number", /^(?:minimum|maximum|exclusiveMinimum|exclusiveMaximum|multipleOf)$/u]
]

/** The type that the keywords of schemas without a type imply. */
export const likelyType = (schemas: ReadonlyArray<unknown>): string => {
  const keywords = schemas.flatMap((schema) => Object.keys(Object(schema)))
  const found = typical.find(([, pattern]) => keywords.some((it) => pattern.test(it)))
  return found?.[0] ?? "object"
}
