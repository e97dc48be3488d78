import { at } from "../domain/json/Json.ts"

/**
 * Members whose JSON belongs to the client or the model: schemas of tools and outputs, examples, arguments and results
 * of calls, labels. The names inside them mean nothing to a vendor.
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

/** Anthropic's tool calls: `tool_use`, `server_tool_use`, `mcp_tool_use`. */
const isToolUse = (block: object): boolean => {
  const type = at(block, "type")
  return typeof type === "string" && type.endsWith("tool_use")
}

type Visit = (name: string, value: unknown, object: object) => void

/**
 * Visits the members of a request in which a vendor looks for content and settings. Not recursive, because a body may
 * be nested to any depth. docs/reference/wallet.md#price-of-a-call
 */
export const visitContent = (body: unknown, visit: Visit): void => {
  const parents: Array<object> = []
  const enter = (value: unknown) => {
    if (typeof value === "object" && value !== null) parents.push(value)
  }
  enter(body)
  for (let parent = parents.pop(); parent !== undefined; parent = parents.pop()) {
    if (Array.isArray(parent)) parent.forEach(enter)
    else visitMembers(parent, parent === body, visit, enter)
  }
}

const visitMembers = (
  object: object,
  isRequest: boolean,
  visit: Visit,
  enter: (value: unknown) => void
): void => {
  for (const name of Object.keys(object)) {
    const value: unknown = Reflect.get(object, name)
    visit(name, value, object)
    if (typeof value !== "object" || ownJson.has(name)) continue
    const isArguments = name === "input" && !isRequest && isToolUse(object)
    if (!isArguments) enter(value)
  }
}

/** Whether the request has a member that passes the test. */
export const hasContentMember = (
  body: unknown,
  is: (name: string, value: unknown) => boolean
): boolean => {
  let found = false
  visitContent(body, (name, value) => {
    found ||= is(name, value)
  })
  return found
}
