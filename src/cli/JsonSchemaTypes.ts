/** TypeScript types of the JSON Schemas in `schema/openapi.json`, for the console and the client. */

export type Json = Readonly<Record<string, unknown>>

const isObject = (value: unknown): value is Json =>
  typeof value === "object" && value !== null && !Array.isArray(value)

export const asObject = (value: unknown): Json => (isObject(value) ? value : {})
export const asList = (value: unknown): ReadonlyArray<unknown> =>
  Array.isArray(value) ? value : []

const union = (types: ReadonlyArray<string>): string => [...new Set(types)].join(" | ") || "never"

export const refName = (ref: unknown): string => String(ref).split("/").at(-1) ?? ""

/** The name of a component schema, and the notation of a list type. */
export interface TypeNames {
  readonly component: (name: string) => string
  readonly list: (item: string) => string
}

/** The TypeScript type of a JSON Schema. */
export const typeOf = (schema: unknown, names: TypeNames): string => {
  const it = asObject(schema)
  if (it["$ref"] !== undefined) return names.component(refName(it["$ref"]))
  const choices = asList(it["anyOf"] ?? it["oneOf"])
  if (choices.length > 0) return union(choices.map((one) => typeOf(one, names)))
  if (it["enum"] !== undefined) return union(asList(it["enum"]).map((one) => JSON.stringify(one)))
  if (Array.isArray(it["type"])) {
    return union(it["type"].map((type) => typeOf({ ...it, type }, names)))
  }
  switch (it["type"]) {
    case "string":
    case "boolean":
    case "null":
      return it["type"]
    case "integer":
    case "number":
      return "number"
    case "array":
      return names.list(typeOf(it["items"], names))
    case "object":
      return objectOf(it, names)
    default:
      return "unknown"
  }
}

const objectOf = (schema: Json, names: TypeNames): string => {
  const properties = Object.entries(asObject(schema["properties"]))
  if (properties.length === 0) {
    const others = schema["additionalProperties"]
    return `Readonly<Record<string, ${isObject(others) ? typeOf(others, names) : "unknown"}>>`
  }
  const required = new Set(asList(schema["required"]))
  return membersOf(
    properties.map(([name, value]) => [name, typeOf(value, names), required.has(name)] as const)
  )
}

/** Names, types, and whether they are required. */
export const membersOf = (members: ReadonlyArray<readonly [string, string, boolean]>): string =>
  `{ ${members.map(([name, type, isRequired]) => `readonly ${JSON.stringify(name)}${isRequired ? "" : "?"}: ${type}`).join("; ")} }`

/** The schemas that a part of the document needs, transitively, in the document's order. */
export const usedSchemas = (
  schemas: Json,
  part: unknown,
  always: ReadonlyArray<string> = []
): ReadonlyArray<string> => {
  const found = new Set<string>(always)
  const visit = (value: unknown): void => {
    for (const [, name = ""] of JSON.stringify(value).matchAll(/#\/components\/schemas\/(\w+)/gu)) {
      if (found.has(name)) continue
      found.add(name)
      visit(schemas[name])
    }
  }
  visit(part)
  for (const name of always) visit(schemas[name])
  return Object.keys(schemas).filter((name) => found.has(name))
}
