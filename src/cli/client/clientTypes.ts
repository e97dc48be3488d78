import {
  asList,
  asObject,
  membersOf as quotedMembers,
  refName,
  typeOf as quotedType,
  usedSchemas
} from "../JsonSchemaTypes.ts"
import type { Json } from "../JsonSchemaTypes.ts"

const names = {
  component: (name: string) => name,
  list: (item: string) => `ReadonlyArray<${item}>`
}

const withoutQuotes = (type: string): string =>
  type.replaceAll(/readonly "([A-Za-z_]\w*)"/gu, "readonly $1")
const typeOf = (schema: unknown): string => withoutQuotes(quotedType(schema, names))
const membersOf = (members: Parameters<typeof quotedMembers>[0]): string =>
  withoutQuotes(quotedMembers(members))

const methods = ["get", "post", "patch", "delete"] as const

/** How the document says of a field that its medium may stand in the body. docs/reference/models.md#media-in-bodies */
const inlineMedium = "data URI or Base64"

/** Makes `src/client/schema.ts`: bodies by model, and the operations of the management API. */
export const clientTypes = (document: Json): string => {
  const components = asObject(document["components"])
  const schemas = asObject(components["schemas"])
  const parameters = asObject(components["parameters"])
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
          : [operationLines(`${method.toUpperCase()} ${path}`, operation, answer, parameters)]
      })
    )
  const bodies = new Set(models.map(({ body }) => body))
  const used = usedSchemas(schemas, { operations: paths.filter(([path]) => isManaged(path)) }, [
    "Problem",
    "TaskResult",
    "CreatedTask",
    "Quote",
    ...bodies
  ])
  return `/* Made from schema/openapi.json by \`npm run schema\`. */
/* oxlint-disable max-lines -- as long as the API */
import type { Media } from "./Media.ts"

/** A page of a list. docs/reference/http.md#lists */
export interface Page<T> {
  readonly data: ReadonlyArray<T>
  /** What gives the next page as \`cursor\`; \`null\` after the last one. */
  readonly next_cursor: string | null
}

${used.map((name) => declarationOf(name, asObject(schemas[name]), bodies.has(name))).join("\n\n")}

/** The bodies of creates, by model. docs/reference/models.md#labels */
export interface ModelInputs {
${models.map(({ body, model }) => `  readonly "${model}": ${body}`).join("\n")}
}

/** Where the models of the built-in catalog are. */
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

/** The type of a success; \`undefined\` of what is no operation but a stream of events. */
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

const operationLines = (
  route: string,
  operation: Json,
  answer: string,
  parameters: Json
): string => {
  const found = asList(operation["parameters"]).map((it) => {
    const one = asObject(it)
    return one["$ref"] === undefined ? one : asObject(parameters[refName(one["$ref"])])
  })
  const members = (["path", "query"] as const).flatMap((place) => {
    const inPlace = found
      // A list as a file is no page
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
