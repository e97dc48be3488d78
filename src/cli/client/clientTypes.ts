import { Predicate } from "effect"

type Json = Readonly<Record<string, unknown>>

const methods = ["get", "post", "patch", "delete"] as const

/** The text by which the document marks fields that accept inline media. docs/reference/models.md#media-in-bodies */
const inlineMedium = "data URI or Base64"

/**
 * Generates `src/client/schema.ts`, the types of the client and the console: bodies by model, and the operations of
 * the management API. ADR 0042
 */
export const clientTypes = (document: Json): string => {
  const components = asObject(document["components"])
  const schemas = asObject(components["schemas"])
  const paths = Object.entries(asObject(document["paths"]))
  const models = paths.flatMap(([path, item]) => modelOf(path, asObject(item)))
  const operations = paths
    .filter(([path]) => isManaged(path))
    .flatMap(([path, item]) =>
      methods.flatMap((method) => {
        const operation = asObject(asObject(item)[method])
        const answer = answerOf(operation)
        return answer === undefined
          ? []
          : [operationLines(`${method.toUpperCase()} ${path}`, operation, answer)]
      })
    )
  const ofUser = paths.flatMap(([path, item]) =>
    isManaged(path) &&
    asList(asObject(asObject(item)["get"])["parameters"]).some(
      (parameter) => asObject(parameter)["name"] === "user_id"
    )
      ? [JSON.stringify(path)]
      : []
  )
  const bodies = new Set(models.map(({ body }) => body))
  const used = usedSchemas(schemas, { operations: paths.filter(([path]) => isManaged(path)) }, [
    "Problem",
    "TaskResult",
    "CreatedTask",
    "Quote",
    ...bodies
  ])
  return `/* Generated from schema/openapi.json by \`npm run schema\`. */
/* oxlint-disable max-lines -- as long as the API */

/**
 * The values of a media field: a string as in the API (a public URL, a data URI or Base64), or the bytes themselves.
 * docs/reference/models.md#media-in-bodies
 */
export type Media = string | Blob | Uint8Array | ArrayBuffer | ReadableStream<Uint8Array>

/** A page of a list. docs/reference/http.md#lists */
export interface Page<T> {
  readonly data: ReadonlyArray<T>
  /** Pass it as \`cursor\` to get the next page; \`null\` on the last page. */
  readonly next_cursor: string | null
}

${used.map((name) => declarationOf(name, asObject(schemas[name]), bodies.has(name))).join("\n\n")}

/** All schemas by name. */
export interface Schemas {
${used.map((name) => `  readonly ${name}: ${name}`).join("\n")}
}

/** The bodies of creates, by model. docs/reference/models.md#labels */
export interface ModelInputs {
${models.map(({ body, model }) => `  readonly "${model}": ${body}`).join("\n")}
}

/** The paths of the models of the built-in catalog. */
export const builtInModels: {
  readonly [Model in keyof ModelInputs]: {
    readonly vendor: string
    readonly action: "generation" | "edit"
  }
} = {
${models.map(({ action, model, vendor }) => `  "${model}": { vendor: "${vendor}", action: "${action}" }`).join(",\n")}
}

/** The management API. docs/reference/http.md#management-api */
export interface Operations {
${operations.join("\n")}
}

/** The GET of these paths takes \`user_id\`, with which the operator reads a user's data. */
export const pathsOfUser: ReadonlyArray<string> = [${ofUser.join(", ")}]
`
}

const isManaged = (path: string): boolean =>
  path.startsWith("/manage/v1/") && !path.includes("/oidc")

const modelOf = (path: string, item: Json) => {
  const [, vendor = "", model = "", action] =
    /^\/vendors\/([^/]+)\/v1\/([^/]+)\/(generation|edit)$/u.exec(path) ?? []
  if (action === undefined) return []
  const { content } = asObject(asObject(item["post"])["requestBody"])
  const { schema } = asObject(asObject(content)["application/json"])
  return [{ vendor, model, action, body: refName(asObject(schema)["$ref"]) }]
}

const commentOf = (text: unknown, indent: string): string =>
  typeof text === "string" ? `${indent}/** ${text.replaceAll("*/", "*\\/")} */\n` : ""

const declarationOf = (name: string, schema: Json, isBody: boolean): string => {
  const properties = Object.entries(asObject(schema["properties"]))
  const comment = commentOf(schema["description"], "")
  if (properties.length === 0) return `${comment}export type ${name} = ${typeOf(schema)}`
  const required = new Set(asList(schema["required"]))
  const lines = properties.map(([property, value]) => {
    const type = typeOf(value)
    const isMedium = isBody && JSON.stringify(value).includes(inlineMedium)
    const shown = isMedium ? type.replaceAll("string", "Media") : type
    return `${commentOf(asObject(value)["description"], "  ")}  readonly ${property}${required.has(property) ? "" : "?"}: ${shown}`
  })
  return `${comment}export interface ${name} {\n${lines.join("\n")}\n}`
}

/** The type of a successful response. `undefined` for an event stream, which gets no operation. */
const answerOf = (operation: Json): string | undefined => {
  const success = Object.entries(asObject(operation["responses"])).find(([status]) =>
    status.startsWith("2")
  )
  if (success === undefined) return undefined
  const content = Object.entries(asObject(asObject(success[1])["content"]))
  if (content.length === 0) return "undefined"
  if (content.some(([type]) => type === "text/event-stream")) return undefined
  return content
    .map(([type, it]) =>
      type === "application/json" ? answerType(asObject(asObject(it)["schema"])) : "string"
    )
    .join(" | ")
}

const answerType = (schema: Json): string => {
  const properties = asObject(schema["properties"])
  return "data" in properties && "next_cursor" in properties
    ? `Page<${typeOf(asObject(properties["data"])["items"])}>`
    : typeOf(schema)
}

const operationLines = (route: string, operation: Json, answer: string): string => {
  const found = asList(operation["parameters"]).map(asObject)
  const members = (["path", "query"] as const).flatMap((place) => {
    const inPlace = found
      // Omits `format`, because a list as a file has no pages
      .filter((it) => it["in"] === place && it["name"] !== "format")
      .map((it) => [String(it["name"]), typeOf(it["schema"]), it["required"] === true] as const)
    const isRequired = inPlace.some(([, , required]) => required)
    return inPlace.length === 0 ? [] : [[place, membersOf(inPlace), isRequired] as const]
  })
  const { content, required } = asObject(operation["requestBody"])
  const { schema } = asObject(asObject(content)["application/json"])
  const body = schema === undefined ? [] : [["body", typeOf(schema), required !== false] as const]
  const lines = [...members, ...body, ["response", answer, true] as const].map(
    ([name, type, isRequired]) => `    readonly ${name}${isRequired ? "" : "?"}: ${type}`
  )
  return `${commentOf(operation["summary"], "  ")}  readonly "${route}": {\n${lines.join("\n")}\n  }`
}

const asObject = (value: unknown): Json => (Predicate.isObject(value) ? value : {})
const asList = (value: unknown): ReadonlyArray<unknown> => (Array.isArray(value) ? value : [])

const union = (types: ReadonlyArray<string>): string => [...new Set(types)].join(" | ") || "never"

const refName = (ref: unknown): string => String(ref).split("/").at(-1) ?? ""

/** The TypeScript type of a JSON Schema. */
const typeOf = (schema: unknown): string => {
  const it = asObject(schema)
  if (it["$ref"] !== undefined) return refName(it["$ref"])
  const choices = asList(it["anyOf"] ?? it["oneOf"])
  if (choices.length > 0) return union(choices.map((one) => typeOf(one)))
  if (it["enum"] !== undefined) return union(asList(it["enum"]).map((one) => JSON.stringify(one)))
  if (Array.isArray(it["type"])) {
    return union(it["type"].map((type) => typeOf({ ...it, type })))
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
      return `ReadonlyArray<${typeOf(it["items"])}>`
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
    return `Readonly<Record<string, ${Predicate.isObject(others) ? typeOf(others) : "unknown"}>>`
  }
  const required = new Set(asList(schema["required"]))
  return membersOf(
    properties.map(([name, value]) => [name, typeOf(value), required.has(name)] as const)
  )
}

const keyOf = (name: string): string => (/^[A-Za-z_]\w*$/u.test(name) ? name : JSON.stringify(name))

/** An object type from names, types, and whether each member is required. */
const membersOf = (members: ReadonlyArray<readonly [string, string, boolean]>): string =>
  `{ ${members.map(([name, type, isRequired]) => `readonly ${keyOf(name)}${isRequired ? "" : "?"}: ${type}`).join("; ")} }`

/** The schemas that a part of the document uses, directly or indirectly, in the document's order. */
const usedSchemas = (
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
