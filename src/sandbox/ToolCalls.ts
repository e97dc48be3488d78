import { at } from "../domain/Json.ts"

/** A simulated call of an offered tool. */
export interface ToolCall {
  readonly name: string
  readonly arguments: object
}

const listOf = (value: unknown): ReadonlyArray<unknown> => (Array.isArray(value) ? value : [])

interface OfferedTool {
  readonly name: string
  readonly schema: unknown
}

/** The functions among the tools, in the format of OpenAI, Anthropic or Gemini; hosted tools are excluded. */
const toolsOf = (body: unknown): ReadonlyArray<OfferedTool> =>
  listOf(at(body, "tools"))
    .flatMap((tool) =>
      [tool, at(tool, "function")].concat(
        listOf(at(tool, "functionDeclarations") ?? at(tool, "function_declarations"))
      )
    )
    .flatMap((tool) => {
      const name = at(tool, "name")
      const type = at(tool, "type") ?? "function"
      return typeof name === "string" && (type === "function" || type === "custom")
        ? [{ name, schema: schemaOf(tool) }]
        : []
    })

const schemaOf = (tool: unknown): unknown =>
  at(tool, "parameters") ?? at(tool, "input_schema") ?? at(tool, "parametersJsonSchema")

const modeOf = (body: unknown): unknown => {
  const choice = at(body, "tool_choice")
  return typeof choice === "string"
    ? choice
    : (at(choice, "type") ?? at(body, "toolConfig", "functionCallingConfig", "mode"))
}

const requestedName = (body: unknown): unknown =>
  at(body, "tool_choice", "function", "name") ??
  at(body, "tool_choice", "name") ??
  at(body, "toolConfig", "functionCallingConfig", "allowedFunctionNames", "0")

/** The conversation ends with the result of a tool. */
const endsWithResult = (body: unknown): boolean => {
  const turns = listOf(at(body, "messages") ?? at(body, "contents") ?? at(body, "input"))
  const last = turns.at(-1)
  return (
    at(last, "role") === "tool" ||
    at(last, "type") === "function_call_output" ||
    listOf(at(last, "content")).some((block) => at(block, "type") === "tool_result") ||
    listOf(at(last, "parts")).some((part) => at(part, "functionResponse") !== undefined)
  )
}

/**
 * A call of the requested tool, else of the first one. None when the client forbids tools, or after a
 * tool's result, so that the loop of an agent ends.
 */
export const toolCallOf = (body: unknown): ToolCall | undefined => {
  if (/^none$/iu.test(String(modeOf(body))) || endsWithResult(body)) return undefined
  const tools = toolsOf(body)
  const requested = requestedName(body)
  const tool = tools.find(({ name }) => name === requested) ?? tools[0]
  if (tool === undefined) return undefined
  const made = exampleOf(tool.schema)
  return {
    name: tool.name,
    arguments: typeof made === "object" && made !== null && !Array.isArray(made) ? made : {}
  }
}

const depthMax = 8

/** A value that satisfies type, enum and required members of a JSON schema. */
const exampleOf = (schema: unknown, depth = 0): unknown => {
  const given = at(schema, "const") ?? at(schema, "default") ?? at(schema, "enum", "0")
  if (given !== undefined) return given
  const type = at(schema, "type")
  const named = Array.isArray(type) ? type.find((it) => it !== "null") : type
  switch (typeof named === "string" ? named.toLowerCase() : "") {
    case "string":
      return "simulated"
    case "integer":
    case "number":
      return at(schema, "minimum") ?? 1
    case "boolean":
      return true
    case "array":
      return depth < depthMax ? [exampleOf(at(schema, "items"), depth + 1)] : []
    default:
      return depth < depthMax ? membersOf(schema, depth) : {}
  }
}

const membersOf = (schema: unknown, depth: number): unknown => {
  const form = at(schema, "anyOf", "0")
  if (form !== undefined) return exampleOf(form, depth + 1)
  const properties = at(schema, "properties")
  const required = listOf(at(schema, "required"))
  // Unique names: one that is listed ten times on each of eight levels would be made a hundred million times
  const names = required.length > 0 ? new Set(required.map(String)) : Object.keys(properties ?? {})
  return Object.fromEntries(
    Array.from(names, (name) => [name, exampleOf(at(properties, name), depth + 1)])
  )
}
