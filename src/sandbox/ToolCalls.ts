import { at } from "../domain/Json.ts"
import { exampleOf } from "./SchemaExample.ts"
import { listOf } from "./SchemaTypes.ts"

/** A simulated call of an offered tool. */
export interface ToolCall {
  readonly name: string
  readonly arguments: object
}

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
