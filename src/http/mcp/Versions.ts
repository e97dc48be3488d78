import type { HttpServerRequest } from "effect/http"
import { Buffer } from "node:buffer"
import { protocolVersions } from "../../contract/McpApi.ts"
import { isObject, metaNames, rpcCodes } from "./JsonRpc.ts"
import type { JsonObject, RpcError, RpcRequest } from "./JsonRpc.ts"

/**
 * The protocol versions. Up to 2025-11-25 a client starts with `initialize`; since 2026-07-28 every request contains
 * all information about its client. Neither needs a session. docs/reference/mcp.md#versions
 */
const [stateless, ...handshakes] = protocolVersions
export type ProtocolVersion = (typeof protocolVersions)[number]

/** The version of requests without the header (MCP 2025-11-25, Transports, Protocol Version Header). */
const assumed = "2025-03-26"

export const isStateless = (version: ProtocolVersion): boolean => version === stateless

/** Whether the version supports batches, which 2025-06-18 removed again. */
export const takesBatches = (version: ProtocolVersion): boolean => version === assumed

/** Whether the version supports resource links; older clients do not know the type. */
export const hasResourceLinks = (version: ProtocolVersion): boolean => version !== assumed

const known = (version: unknown): ProtocolVersion | undefined =>
  protocolVersions.find((it) => it === version)

/**
 * The version that `initialize` negotiates: the client's, if it is supported, or else the newest one, which the client
 * may refuse.
 */
export const negotiate = (asked: string): ProtocolVersion =>
  handshakes.find((it) => it === asked) ?? handshakes[0]

type Headers = HttpServerRequest.HttpServerRequest["headers"]

export const metaOf = (params: JsonObject): JsonObject =>
  isObject(params["_meta"]) ? params["_meta"] : {}

/** Whether the client of this request accepts a task instead of a result. */
export const takesTasks = ({ params }: RpcRequest): boolean => {
  const capabilities = metaOf(params)[metaNames.capabilities]
  return isObject(capabilities) && isObject(capabilities["extensions"])
}

/** The version in the header, which determines whether a batch is accepted and how it is read. */
export const headerVersion = (headers: Headers): ProtocolVersion | RpcError => {
  const asked = headers["mcp-protocol-version"]
  return asked === undefined ? assumed : (known(asked) ?? unsupported(asked))
}

const unsupported = (requested: string): RpcError => ({
  code: rpcCodes.unsupportedVersion,
  message: `Unsupported protocol version ${requested.slice(0, 60)}`,
  data: { supported: protocolVersions, requested: requested.slice(0, 60) }
})

const mismatch = (message: string): RpcError => ({ code: rpcCodes.headerMismatch, message })

const incomplete = (message: string): RpcError => ({ code: rpcCodes.invalidParams, message })

/** The version of a request. An error is sent with status 400. */
export const versionOf = (headers: Headers, request: RpcRequest): ProtocolVersion | RpcError => {
  const meta = metaOf(request.params)
  const claim = meta[metaNames.version]
  const given = headers["mcp-protocol-version"]
  // Before the negotiation, a client's header has no meaning
  if (claim === undefined && request.method === "initialize") return assumed
  if (claim === undefined && given !== stateless) return headerVersion(headers)
  if (given === undefined) return mismatch("The header MCP-Protocol-Version is missing")
  if (typeof claim !== "string") return incomplete(`_meta lacks ${metaNames.version}`)
  if (claim !== given) return mismatch("MCP-Protocol-Version is not the version of _meta")
  if (!isObject(meta[metaNames.capabilities])) {
    return incomplete(`_meta lacks ${metaNames.capabilities}`)
  }
  const version = known(claim)
  if (version === undefined || !isStateless(version)) return unsupported(claim)
  return routingFault(headers, request) ?? version
}

/** The parameter that the `Mcp-Name` header repeats, by method (MCP 2026-07-28, and SEP-2663 for tasks). */
const routedMembers: Readonly<Partial<Record<string, string>>> = {
  "tools/call": "name",
  "tasks/get": "taskId",
  "tasks/update": "taskId",
  "tasks/cancel": "taskId"
}

/** Checks that these headers match the body, because proxies route by them. */
const routingFault = (headers: Headers, { method, params }: RpcRequest): RpcError | undefined => {
  if (headers["mcp-method"] !== method) return mismatch("Mcp-Method is not the method of the body")
  const member = routedMembers[method]
  if (member === undefined) return undefined
  return decodeRouted(headers["mcp-name"]) === params[member]
    ? undefined
    : mismatch(`Mcp-Name is not the ${member} of the body`)
}

const encoded = /^=\?base64\?([A-Za-z0-9+/=]*)\?=$/u

/** Decodes a header value, which is Base64 if a header cannot contain it as plain text. */
const decodeRouted = (header: string | undefined): string | undefined => {
  const base64 = header === undefined ? undefined : encoded.exec(header)?.[1]
  return base64 === undefined ? header : Buffer.from(base64, "base64").toString("utf8")
}
