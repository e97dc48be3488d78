import { HttpServerResponse } from "effect/http"

/** JSON-RPC 2.0 as MCP uses it. docs/reference/mcp.md#messages */

export type JsonObject = Readonly<Record<string, unknown>>

export interface RpcRequest {
  readonly _tag: "Request"
  readonly id: string | number
  readonly method: string
  readonly params: JsonObject
}

/** A message that gets no response: a notification, or a response to a request by the server. */
export interface RpcNotice {
  readonly _tag: "Notice"
}

export interface RpcInvalid {
  readonly _tag: "Invalid"
  readonly id: string | number | null
  readonly detail: string
}

export type RpcMessage = RpcRequest | RpcNotice | RpcInvalid

/** The codes of JSON-RPC 2.0, section 5.1, and of MCP 2026-07-28. */
export const rpcCodes = {
  parseError: -32700,
  invalidRequest: -32600,
  methodNotFound: -32601,
  invalidParams: -32602,
  internalError: -32603,
  headerMismatch: -32020,
  missingCapability: -32021,
  unsupportedVersion: -32022
} as const

export interface RpcError {
  readonly code: (typeof rpcCodes)[keyof typeof rpcCodes]
  readonly message: string
  readonly data?: unknown
}

export const isObject = (value: unknown): value is JsonObject =>
  typeof value === "object" && value !== null && !Array.isArray(value)

/** The maximum length of an id, which is kept until the response. */
const idCharactersMax = 1000

/** Unlike JSON-RPC, MCP does not allow `null` as an id. Unsafe integers could not be returned unchanged. */
const isId = (value: unknown): value is string | number =>
  typeof value === "string" ? value.length <= idCharactersMax : Number.isSafeInteger(value)

/** The parameters that are read, by method. */
const paramNames: ReadonlyMap<string, ReadonlyArray<string>> = new Map([
  ["initialize", ["protocolVersion", "capabilities", "clientInfo"]],
  ["tools/list", ["cursor"]],
  ["tools/call", ["name", "arguments"]],
  ["tasks/get", ["taskId"]],
  ["tasks/update", ["taskId"]],
  ["tasks/cancel", ["taskId"]]
])

const metaPrefix = "io.modelcontextprotocol/"

/** The members of `_meta` that state the client's version and capabilities. `_meta` itself may be of any size. */
export const metaNames = {
  version: `${metaPrefix}protocolVersion`,
  capabilities: `${metaPrefix}clientCapabilities`
} as const

/**
 * Keeps only the parameters that are read, so that a request that waits for a task does not keep the rest of its body.
 */
const neededParams = (method: string, params: JsonObject): JsonObject => {
  const { _meta } = params
  const picked = pick(params, paramNames.get(method) ?? [])
  return isObject(_meta) ? { ...picked, _meta: neededMeta(_meta) } : picked
}

/** The name of the extension for long calls. docs/reference/mcp.md#tasks */
export const tasksExtension = `${metaPrefix}tasks`

/** The tasks extension, which is the only capability that is read. */
const neededCapabilities = (given: JsonObject): JsonObject => {
  const { extensions } = given
  return isObject(extensions) && isObject(extensions[tasksExtension])
    ? { extensions: { [tasksExtension]: {} } }
    : {}
}

/** The version (null unless it is a string) and the capabilities that are read. */
const neededMeta = (meta: JsonObject): JsonObject => {
  const { version, capabilities } = metaNames
  const { [version]: claim, [capabilities]: given } = pick(meta, [version, capabilities])
  return {
    ...(claim === undefined ? {} : { [version]: typeof claim === "string" ? claim : null }),
    ...(isObject(given) ? { [capabilities]: neededCapabilities(given) } : {})
  }
}

const pick = (object: JsonObject, names: ReadonlyArray<string>): JsonObject =>
  Object.fromEntries(
    names.flatMap((name) => (Object.hasOwn(object, name) ? [[name, object[name]]] : []))
  )

/** Parses one message of a body. */
export const readMessage = (value: unknown): RpcMessage => {
  if (!isObject(value)) return { _tag: "Invalid", id: null, detail: "Expected an object" }
  const { id, jsonrpc, method, params = {} } = value
  const invalid = (detail: string): RpcInvalid => ({
    _tag: "Invalid",
    id: isId(id) ? id : null,
    detail
  })
  if (jsonrpc !== "2.0") return invalid('Expected "jsonrpc": "2.0"')
  const hasId = Object.hasOwn(value, "id")
  if (method === undefined) {
    const isResponse = Object.hasOwn(value, "result") !== Object.hasOwn(value, "error")
    return hasId && isResponse ? { _tag: "Notice" } : invalid("Expected a method")
  }
  if (typeof method !== "string") return invalid("Expected a method that is a string")
  if (!isObject(params)) return invalid("Expected params that are an object")
  if (!hasId) return { _tag: "Notice" }
  return isId(id)
    ? { _tag: "Request", id, method, params: neededParams(method, params) }
    : invalid(
        `Expected an id that is an integer, or a string of at most ${idCharactersMax} characters`
      )
}

export const resultOf = (id: string | number, result: JsonObject): JsonObject => ({
  jsonrpc: "2.0",
  id,
  result
})

export const errorOf = (id: string | number | null, error: RpcError): JsonObject => ({
  jsonrpc: "2.0",
  id,
  error
})

/** Not cacheable, because a tool's output belongs to one key. */
const headers = { "cache-control": "no-store" }

export const respondJson = (body: unknown, status = 200): HttpServerResponse.HttpServerResponse =>
  HttpServerResponse.jsonUnsafe(body, { status, headers })

/** The response to accepted notifications. */
export const accepted = HttpServerResponse.empty({ status: 202, headers })
