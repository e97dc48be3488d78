import { at } from "../domain/Json.ts"

/**
 * Members whose JSON is the client's own or the model's: schemas of tools and answers, examples, arguments and
 * results of calls, labels. The names in it mean nothing to a vendor.
 */
const ownJson: ReadonlySet<string> = new Set([
  "parameters",
  "parametersJsonSchema",
  "parameters_json_schema",
  "input_schema",
  "input_examples",
  "schema",
  "responseSchema",
  "response_schema",
  "responseJsonSchema",
  "response_json_schema",
  "response",
  "args",
  "arguments",
  "metadata"
])

/** Anthropic's calls of tools: `tool_use`, `server_tool_use`, `mcp_tool_use`. */
const isToolUse = (block: object): boolean => {
  const type = at(block, "type")
  return typeof type === "string" && type.endsWith("tool_use")
}

/**
 * Visits the objects of a request in which a vendor looks for content and settings. No recursion, because a
 * body may be nested to any depth. docs/reference/wallet.md#price-of-a-call
 */
export const visitContent = (body: unknown, visit: (object: object) => void): void => {
  const waiting: Array<unknown> = [body]
  while (waiting.length > 0) {
    const value = waiting.pop()
    if (typeof value !== "object" || value === null) continue
    if (Array.isArray(value)) {
      for (const element of value) waiting.push(element)
      continue
    }
    visit(value)
    const hasArguments = value !== body && isToolUse(value)
    for (const [name, member] of Object.entries(value)) {
      if (!ownJson.has(name) && !(hasArguments && name === "input")) waiting.push(member)
    }
  }
}

/** Whether an object that a vendor reads has a member of this kind. */
export const hasContentMember = (
  body: unknown,
  is: (name: string, value: unknown) => boolean
): boolean => {
  let found = false
  visitContent(body, (object) => {
    found ||= Object.entries(object).some(([name, value]) => is(name, value))
  })
  return found
}
