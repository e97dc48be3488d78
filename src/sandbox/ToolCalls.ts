import { Predicate } from "effect"
import { at } from "../domain/json/Json.ts"
import { exampleOf } from "./SchemaExample.ts"
import { listOf, textsOf } from "./SchemaTypes.ts"

/** A simulated tool call. A custom tool of OpenAI takes text instead of arguments. */
export interface ToolCall {
  readonly name: string
  readonly arguments: object | string
  /** The namespace in which an OpenAI Responses tool was offered. */
  readonly namespace?: string
}

interface OfferedTool extends Pick<ToolCall, "name" | "namespace"> {
  /** Returns arguments that fit the tool. */
  readonly example: () => object | string
}

/** The functions among the tools, in the format of OpenAI, Anthropic or Gemini. Excludes tools that the vendor runs. */
const toolsOf = (body: unknown): ReadonlyArray<OfferedTool> =>
  [
    ...listOf(at(body, "tools")),
    ...listOf(at(body, "functions")),
    // Codex offers its tools as items of the input
    ...listOf(at(body, "input")).flatMap((item) =>
      at(item, "type") === "additional_tools" ? listOf(at(item, "tools")) : []
    )
  ].flatMap(offeredBy)

const offeredBy = (tool: unknown): ReadonlyArray<OfferedTool> => {
  if (at(tool, "type") === "namespace") {
    const namespace = String(at(tool, "name"))
    return listOf(at(tool, "tools")).flatMap((it) =>
      offeredBy(it).map(({ example, name }) => ({ example, name, namespace }))
    )
  }
  const custom = at(tool, "custom") ?? tool
  if (at(tool, "type") === "custom" && schemaOf(tool) === undefined) {
    // No example can be generated for a grammar
    const isFree = at(custom, "format", "type") !== "grammar"
    return isFree ? named(custom, () => "simulated") : []
  }
  return [tool, at(tool, "function")]
    .concat(listOf(at(tool, "functionDeclarations") ?? at(tool, "function_declarations")))
    .flatMap((one) => {
      const type = at(one, "type") ?? "function"
      const isCallable = type === "function" || type === "custom"
      return isCallable ? named(one, () => argumentsFor(schemaOf(one))) : []
    })
}

const argumentsFor = (schema: unknown): object => {
  const made = exampleOf(schema)
  return Predicate.isObject(made) ? made : {}
}

const named = (tool: unknown, example: OfferedTool["example"]): ReadonlyArray<OfferedTool> => {
  const name = at(tool, "name")
  return typeof name === "string" ? [{ name, example }] : []
}

const schemaOf = (tool: unknown): unknown =>
  at(tool, "parameters") ??
  at(tool, "input_schema") ??
  at(tool, "parametersJsonSchema") ??
  at(tool, "parameters_json_schema")

/** How the request restricts the use of its tools. */
interface ToolChoice {
  readonly isForbidden: boolean
  /** Forces a call of one of these tools, or of any tool if the list is empty. */
  readonly forced: ReadonlyArray<unknown> | undefined
}

const free: ToolChoice = { isForbidden: false, forced: undefined }
const forbidden: ToolChoice = { isForbidden: true, forced: undefined }
const forcing = (names: ReadonlyArray<unknown>): ToolChoice => ({
  isForbidden: false,
  forced: names.filter((name) => name !== undefined)
})

/** The name of a tool. The chat format nests it; the formats of Responses and Anthropic do not. */
const nameOf = (tool: unknown): unknown =>
  at(tool, "function", "name") ?? at(tool, "custom", "name") ?? at(tool, "name")

/** `tool_choice` of OpenAI and Anthropic, OpenAI's former `function_call`, and Gemini's `mode`. */
const choiceOf = (body: unknown): ToolChoice => {
  const former = at(body, "function_call")
  const name = at(former, "name")
  const choice = at(body, "tool_choice") ?? (name === undefined ? former : { type: "tool", name })
  switch (at(choice, "type") ?? choice) {
    case "none":
      return forbidden
    case "required":
    case "any":
      return forcing([])
    case "function":
    case "custom":
    case "tool":
      return forcing([nameOf(choice)])
    case "allowed_tools": {
      const allowed = at(choice, "allowed_tools") ?? choice
      return at(allowed, "mode") === "required"
        ? forcing(listOf(at(allowed, "tools")).map(nameOf))
        : free
    }
    default:
      return geminiChoiceOf(body)
  }
}

/** Gemini accepts two spellings of each name. */
const geminiChoiceOf = (body: unknown): ToolChoice => {
  const config = at(body, "toolConfig") ?? at(body, "tool_config")
  const calling = at(config, "functionCallingConfig") ?? at(config, "function_calling_config")
  switch (at(calling, "mode")) {
    case "NONE":
      return forbidden
    case "ANY":
      return forcing(
        listOf(at(calling, "allowedFunctionNames") ?? at(calling, "allowed_function_names"))
      )
    default:
      return free
  }
}

const turnsOf = (body: unknown): ReadonlyArray<unknown> =>
  listOf(at(body, "messages") ?? at(body, "contents") ?? at(body, "input"))

/** The texts of the user's last message. */
const lastPromptOf = (body: unknown): string => {
  const input = at(body, "input")
  if (typeof input === "string") return input
  const turn = turnsOf(body).findLast((turn) => (at(turn, "role") ?? "user") === "user")
  const content = at(turn, "content") ?? at(turn, "parts")
  if (typeof content === "string") return content
  return textsOf(listOf(content).map((part) => at(part, "text"))).join("\n")
}

/** `[[sim:tool=name]]` calls a tool of that name. */
const directive = /\[\[sim:tool=([\w.:-]{1,128})\]\]/u

/** Whether a turn has the result of a tool. */
const isResult = (turn: unknown): boolean =>
  at(turn, "role") === "tool" ||
  at(turn, "role") === "function" ||
  String(at(turn, "type")).endsWith("_call_output") ||
  listOf(at(turn, "content")).some((block) => at(block, "type") === "tool_result") ||
  listOf(at(turn, "parts")).some(
    (part) => (at(part, "functionResponse") ?? at(part, "function_response")) !== undefined
  )

const isPrompt = (turn: unknown): boolean =>
  (at(turn, "role") ?? "user") === "user" &&
  (at(turn, "type") ?? "message") === "message" &&
  !isResult(turn)

/** The names of the tools that a turn calls. */
const calledBy = (turn: unknown): ReadonlyArray<unknown> =>
  [
    ...(String(at(turn, "type")).endsWith("_call") ? [turn] : []),
    ...listOf(at(turn, "tool_calls")),
    ...listOf([at(turn, "function_call") ?? []].flat()),
    ...listOf(at(turn, "content")).filter((block) => at(block, "type") === "tool_use"),
    ...listOf(at(turn, "parts")).map(
      (part) => at(part, "functionCall") ?? at(part, "function_call")
    )
  ].map(nameOf)

/** The names of the tools called since the user's last message. */
const calledSincePrompt = (turns: ReadonlyArray<unknown>): ReadonlyArray<unknown> =>
  turns.slice(turns.findLastIndex(isPrompt) + 1).flatMap(calledBy)

/**
 * The tool that the request forces or the prompt names. A tool that is only offered is not called, and none is called
 * twice between two messages of the user, so that an agent's loop ends.
 */
const chosenTool = (body: unknown): OfferedTool | undefined => {
  const { forced, isForbidden } = choiceOf(body)
  if (isForbidden) return undefined
  const turns = turnsOf(body)
  const hasResult = isResult(turns.at(-1))
  const called = hasResult ? calledSincePrompt(turns) : []
  // With `previous_response_id` only the result is sent
  if (hasResult && called.length === 0) return undefined
  const tools = toolsOf(body)
  const named = hasResult ? undefined : directive.exec(lastPromptOf(body))?.[1]
  const asked = tools.find(({ name }) => name === named)
  if (forced === undefined) return asked
  const allowed = tools.filter(
    ({ name }) => (forced.length === 0 || forced.includes(name)) && !called.includes(name)
  )
  return allowed.find((tool) => tool === asked) ?? allowed[0]
}

/** Whether a call is given as OpenAI's former `function_call`. */
export const callsFunction = (body: unknown): boolean =>
  listOf(at(body, "functions")).length > 0 && listOf(at(body, "tools")).length === 0

/** The tool call with which a request is answered instead of text. docs/reference/vendors.md#sandbox */
export const toolCallOf = (body: unknown): ToolCall | undefined => {
  const tool = chosenTool(body)
  if (tool === undefined) return undefined
  const { example, ...called } = tool
  return { ...called, arguments: example() }
}
