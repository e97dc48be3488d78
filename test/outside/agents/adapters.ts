import { createHandler } from "@cline/llms"
import type { Message } from "@cline/llms"
import { constructLlmApi } from "@continuedev/openai-adapters"
import type { ChatCompletionCreateParams } from "@continuedev/openai-adapters"
import { readFile, writeFile } from "node:fs/promises"
import type { Agent, Run } from "./agents.ts"
import { versionOf } from "./installed.ts"

/** The parts of Cline and Continue that call vendors. The loop around them, with its two tools, is ours. */

const properties = { file_path: { type: "string" }, content: { type: "string" } }
const tools = ["read_file", "write_file"].map((name) => ({
  name,
  description: name,
  inputSchema: { type: "object", properties, required: ["file_path"] }
}))

interface Call {
  readonly id: string
  readonly name: string
  readonly input: Record<string, unknown>
}

const used = async ({ input, name }: Call): Promise<string> => {
  const path = String(input["file_path"])
  if (name === "read_file") return readFile(path, "utf8").catch(String)
  await writeFile(path, String(input["content"]))
  return "written"
}

/** The model's last message and its tool calls. */
interface Turn {
  readonly text: string
  readonly call: Call | undefined
}

const turnsMax = 5

const loop = async (ask: (before: { call: Call; result: string } | undefined) => Promise<Turn>) => {
  let output = ""
  let before: { call: Call; result: string } | undefined
  try {
    for (let turn = 0; turn < turnsMax; turn += 1) {
      const { call, text } = await ask(before)
      output += text
      if (call === undefined) return { code: 0, output }
      before = { call, result: await used(call) }
    }
  } catch (error) {
    output += String(error)
  }
  return { code: 1, output }
}

const argumentsOf = (given: unknown): Record<string, unknown> =>
  typeof given === "string" ? JSON.parse(given) : (given as Record<string, unknown>)

const cline: Agent = {
  name: "Cline's adapter (@cline/llms)",
  version: versionOf("@cline/llms"),
  tool: "read_file",
  run: ({ key, prompt, url }: Run) => {
    const handler = createHandler({
      providerId: "anthropic",
      apiKey: key,
      baseUrl: `${url}/v1`,
      modelId: "claude-sonnet-5"
    })
    const messages: Array<Message> = [{ role: "user", content: [{ type: "text", text: prompt }] }]
    return loop(async (before) => {
      if (before !== undefined) {
        const { call, result } = before
        messages.push(
          { role: "assistant", content: [{ type: "tool_use", ...call }] },
          {
            role: "user",
            content: [
              { type: "tool_result", tool_use_id: call.id, name: call.name, content: result }
            ]
          }
        )
      }
      let text = ""
      let call: Call | undefined
      for await (const chunk of handler.createMessage("You are an agent.", messages, tools)) {
        if (chunk.type === "text") text += chunk.text
        if (chunk.type === "done" && chunk.error !== undefined) throw new Error(chunk.error)
        if (chunk.type === "tool_calls") {
          const { call_id = "", function: made } = chunk.tool_call
          const input = argumentsOf(made.arguments)
          call = { id: made.id ?? call_id, name: made.name ?? "", input }
        }
      }
      return { text, call }
    })
  }
}

const continueDev: Agent = {
  name: "Continue's adapter (@continuedev/openai-adapters)",
  version: versionOf("@continuedev/openai-adapters"),
  tool: "read_file",
  run: ({ key, prompt, url }: Run) => {
    const api = constructLlmApi({ provider: "openai", apiKey: key, apiBase: `${url}/v1/` })
    const messages: Array<ChatCompletionCreateParams["messages"][number]> = [
      { role: "user", content: prompt }
    ]
    const functions = tools.map(({ inputSchema: parameters, ...it }) => ({
      type: "function" as const,
      function: { ...it, parameters }
    }))
    return loop(async (before) => {
      if (before !== undefined) {
        const { call, result } = before
        const made = { name: call.name, arguments: JSON.stringify(call.input) }
        messages.push(
          {
            role: "assistant",
            content: null,
            tool_calls: [{ id: call.id, type: "function", function: made }]
          },
          { role: "tool", tool_call_id: call.id, content: result }
        )
      }
      let [text, id, name, given] = ["", "", "", ""]
      const asked = { model: "gpt-4o", stream: true as const, messages, tools: functions }
      const chunks = api!.chatCompletionStream(asked, new AbortController().signal)
      for await (const { choices } of chunks) {
        const delta = choices[0]?.delta
        const [part] = delta?.tool_calls ?? []
        text += delta?.content ?? ""
        id += part?.id ?? ""
        name += part?.function?.name ?? ""
        given += part?.function?.arguments ?? ""
      }
      return { text, call: name === "" ? undefined : { id, name, input: argumentsOf(given) } }
    })
  }
}

export const adapters: ReadonlyArray<Agent> = [cline, continueDev]
