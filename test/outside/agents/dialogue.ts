import { at } from "../../../src/domain/json/Json.ts"
import type { VendorServerOptions } from "../../../src/testing/index.ts"
import { listAt } from "../support/recorded/body.ts"

type Answer = NonNullable<VendorServerOptions["answer"]>
type ToolCall = Exclude<ReturnType<Answer>, string | undefined>

/** How an agent reads one file and writes another. */
interface Tools {
  readonly read: (path: string) => ToolCall
  readonly write: (path: string, content: string) => ToolCall
}

/** Codex runs a program that calls its tools. */
const command = (cmd: string): ToolCall => ({
  name: "exec",
  arguments: `text(await tools.exec_command({ cmd: ${JSON.stringify(cmd)} }))`
})

const toolsOf: Readonly<Record<string, Tools>> = {
  // Claude Code
  Read: {
    read: (file_path) => ({ name: "Read", arguments: { file_path } }),
    write: (file_path, content) => ({ name: "Write", arguments: { file_path, content } })
  },
  // Gemini CLI and the adapters
  read_file: {
    read: (file_path) => ({ name: "read_file", arguments: { file_path } }),
    write: (file_path, content) => ({ name: "write_file", arguments: { file_path, content } })
  },
  // opencode
  read: {
    read: (filePath) => ({ name: "read", arguments: { filePath } }),
    write: (filePath, content) => ({ name: "write", arguments: { filePath, content } })
  },
  exec: {
    read: (path) => command(`cat ${path}`),
    write: (path, content) => command(`printf '%s' ${content} > ${path}`)
  }
}

/** All names of tools in a request, whatever its dialect. */
const namesIn = (body: unknown): ReadonlySet<string> => {
  const found = new Set<string>()
  const offered = [
    ...listAt(body, "tools"),
    ...listAt(body, "input").flatMap((item) => listAt(item, "tools"))
  ]
  JSON.stringify(offered, (key, value) => {
    if (key === "name") found.add(String(value))
    return value
  })
  return found
}

const turnsOf = (body: unknown) => [
  ...listAt(body, "messages"),
  ...listAt(body, "contents"),
  ...listAt(body, "input")
]

/** The number of tool results in the conversation so far. */
const resultsIn = (body: unknown): number =>
  turnsOf(body)
    .flatMap((turn) => [turn].concat(listAt(turn, "content"), listAt(turn, "parts")))
    .filter(
      (it) =>
        at(it, "role") === "tool" ||
        /(?:tool_result|_call_output)$/u.test(String(at(it, "type"))) ||
        at(it, "functionResponse") !== undefined
    ).length

/** The prompt of the person. */
export const taskIn = (folder: string): string => `Copy ${folder}/input.txt to ${folder}/output.txt`

export const done = "The job is done"

/** aider has no tools and reads blocks in the text instead. */
const block = (token: string) =>
  ["output.txt", "<<<<<<< SEARCH", "=======", token, ">>>>>>> REPLACE", done].join("\n")

/**
 * A model that does the task with two tool calls: it reads the file, writes its content into the other one, and ends.
 * Other requests get the simulator's response.
 */
export const dialogue: Answer = ({ json }) => {
  const text = JSON.stringify(json) ?? ""
  const folder = /Copy ([^\s"\\]+)\/input\.txt/u.exec(text)?.[1]
  if (folder === undefined) return undefined
  const token = /token-[0-9a-f]{8}/u.exec(text)?.[0] ?? "nothing-read"
  if (text.includes(">>>>>>> REPLACE")) return block(token)
  const names = namesIn(json)
  const tools = Object.entries(toolsOf).find(([name]) => names.has(name))?.[1]
  if (tools === undefined) return undefined
  switch (resultsIn(json)) {
    case 0:
      return tools.read(`${folder}/input.txt`)
    case 1:
      return tools.write(`${folder}/output.txt`, token)
    default:
      return done
  }
}
