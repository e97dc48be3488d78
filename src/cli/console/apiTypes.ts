import {
  asList,
  asObject,
  membersOf,
  refName,
  typeOf as typeNamed,
  usedSchemas
} from "../JsonSchemaTypes.ts"
import type { Json } from "../JsonSchemaTypes.ts"

const typeOf = (schema: unknown): string =>
  typeNamed(schema, {
    component: (name) => `Schemas["${name}"]`,
    list: (item) => `Array<${item}>`
  })

const methods = ["get", "post", "patch", "delete"] as const

/**
 * Makes `src/console/api/schema.ts`: the management API as the types that openapi-fetch reads, and the
 * paths whose GET takes `user_id`: the operator may read them as a user.
 */
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
  const used = usedSchemas(schemas, paths, ["Problem"])
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
