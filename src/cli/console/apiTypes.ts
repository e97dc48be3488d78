/** Makes `src/console/api/schema.ts`: the management API as the types that openapi-fetch reads. */

type Json = Readonly<Record<string, unknown>>

const isObject = (value: unknown): value is Json =>
  typeof value === "object" && value !== null && !Array.isArray(value)

const asObject = (value: unknown): Json => (isObject(value) ? value : {})
const asList = (value: unknown): ReadonlyArray<unknown> => (Array.isArray(value) ? value : [])

const union = (types: ReadonlyArray<string>): string => [...new Set(types)].join(" | ") || "never"

const refName = (ref: unknown): string => String(ref).split("/").at(-1) ?? ""

/** The TypeScript type of a JSON Schema. */
const typeOf = (schema: unknown): string => {
  const it = asObject(schema)
  if (it["$ref"] !== undefined) return `Schemas["${refName(it["$ref"])}"]`
  const choices = asList(it["anyOf"] ?? it["oneOf"])
  if (choices.length > 0) return union(choices.map(typeOf))
  if (it["enum"] !== undefined) return union(asList(it["enum"]).map((one) => JSON.stringify(one)))
  if (Array.isArray(it["type"])) return union(it["type"].map((type) => typeOf({ ...it, type })))
  switch (it["type"]) {
    case "string":
    case "boolean":
    case "null":
      return it["type"]
    case "integer":
    case "number":
      return "number"
    case "array":
      return `Array<${typeOf(it["items"])}>`
    case "object":
      return objectOf(it)
    default:
      return "unknown"
  }
}

const objectOf = (schema: Json): string => {
  const properties = Object.entries(asObject(schema["properties"]))
  if (properties.length === 0) {
    const others = schema["additionalProperties"]
    return `Readonly<Record<string, ${isObject(others) ? typeOf(others) : "unknown"}>>`
  }
  const required = new Set(asList(schema["required"]))
  return membersOf(
    properties.map(([name, value]) => [name, typeOf(value), required.has(name)] as const)
  )
}

const membersOf = (members: ReadonlyArray<readonly [string, string, boolean]>): string =>
  `{ ${members.map(([name, type, isRequired]) => `readonly ${JSON.stringify(name)}${isRequired ? "" : "?"}: ${type}`).join("; ")} }`

const methods = ["get", "post", "patch", "delete"] as const

/** The types, and the paths whose GET takes `user_id`: the operator may read them as a user. */
export const apiTypes = (document: Json): string => {
  const components = asObject(document["components"])
  const parameters = asObject(components["parameters"])
  const schemas = asObject(components["schemas"])
  const paths = Object.entries(asObject(document["paths"])).filter(
    ([path]) => path.startsWith("/manage/v1/") && !path.includes("/oidc")
  )
  const parametersOf = (operation: Json): ReadonlyArray<Json> =>
    asList(operation["parameters"]).map((it) => {
      const one = asObject(it)
      return one["$ref"] === undefined ? one : asObject(parameters[refName(one["$ref"])])
    })

  const placeOf = (found: ReadonlyArray<Json>, place: string): string => {
    const members = found
      .filter((it) => it["in"] === place && it["name"] !== "Content-Type")
      .map((it) => [String(it["name"]), typeOf(it["schema"]), it["required"] === true] as const)
    if (members.length === 0) return `${place}?: never`
    return `${place}${members.some(([, , isRequired]) => isRequired) ? "" : "?"}: ${membersOf(members)}`
  }

  const contentOf = (content: unknown): string =>
    `{ ${Object.entries(asObject(content))
      .map(([type, it]) => `"${type}": ${typeOf(asObject(it)["schema"])}`)
      .join("; ")} }`

  const operationOf = (operation: Json): string => {
    const found = parametersOf(operation)
    const places = ["query", "header", "path", "cookie"].map((place) => placeOf(found, place))
    const responses = Object.entries(asObject(operation["responses"]))
      .filter(([status]) => status.startsWith("2"))
      .map(([status, it]) => {
        const content = asObject(it)["content"]
        return `${status}: { headers: Headers_; content${content === undefined ? "?: never" : `: ${contentOf(content)}`} }`
      })
    const body = operation["requestBody"]
    return `{ ${[
      `parameters: { ${places.join("; ")} }`,
      `requestBody${body === undefined ? "?: never" : `: { content: ${contentOf(asObject(body)["content"])} }`}`,
      `responses: { ${responses.join("; ")}; default: Failure }`
    ].join("; ")} }`
  }

  const pathLines = paths.map(
    ([path, item]) =>
      `  "${path}": {\n${methods
        .filter((method) => asObject(item)[method] !== undefined)
        .map((method) => `    ${method}: ${operationOf(asObject(asObject(item)[method]))}`)
        .join("\n")}\n  }`
  )
  const ofUser = paths
    .filter(([, item]) =>
      parametersOf(asObject(asObject(item)["get"])).some(({ name }) => name === "user_id")
    )
    .map(([path]) => JSON.stringify(path))
  const used = usedSchemas(schemas, paths)
  const schemaLines = used.map((name) => `  ${name}: ${typeOf(schemas[name])}`)
  return `/* Made from schema/openapi.json by \`npm run console\`. */

type Headers_ = { [name: string]: unknown }
type Failure = { headers: Headers_; content: { "application/problem+json": Schemas["Problem"] } }

export interface Schemas {
${schemaLines.join("\n")}
}

/** Their GET takes \`user_id\`, by which the operator reads what a user has. */
export const pathsOfUser: ReadonlyArray<string> = [${ofUser.join(", ")}]

export interface paths {
${pathLines.join("\n")}
}
`
}

/** Those that the paths need, and those that they need. */
const usedSchemas = (schemas: Json, paths: unknown): ReadonlyArray<string> => {
  const found = new Set<string>(["Problem"])
  const visit = (value: unknown): void => {
    for (const [, name = ""] of JSON.stringify(value).matchAll(/#\/components\/schemas\/(\w+)/gu)) {
      if (found.has(name)) continue
      found.add(name)
      visit(schemas[name])
    }
  }
  visit(paths)
  visit(schemas["Problem"])
  return Object.keys(schemas).filter((name) => found.has(name))
}
