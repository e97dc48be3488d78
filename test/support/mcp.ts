import { Effect } from "effect"
import type { User } from "./gateway.ts"

/** A caller of the gateway in this process. */
export type Caller = Pick<User, "call">

let requests = 0

/** An MCP 2025-11-25 request, unless the headers say otherwise. */
export const rpc = (
  caller: Caller,
  method: string,
  params?: unknown,
  headers: Readonly<Record<string, string>> = { "mcp-protocol-version": "2025-11-25" }
) => caller.call("POST", "/mcp", { jsonrpc: "2.0", id: (requests += 1), method, params }, headers)

/** Calls a tool and returns its successful result. */
export const useTool = (caller: Caller, name: string, args: object = {}) =>
  Effect.map(rpc(caller, "tools/call", { name, arguments: args }), ({ json, text }) => {
    if (json.result?.structuredContent === undefined) throw new Error(text)
    return json.result
  })

/** Calls a tool and returns the problem with which it fails. */
export const failTool = (caller: Caller, name: string, args: object = {}) =>
  Effect.map(rpc(caller, "tools/call", { name, arguments: args }), ({ json, text }) => {
    if (json.result?.isError !== true) throw new Error(text)
    return JSON.parse(json.result.content[0].text)
  })
