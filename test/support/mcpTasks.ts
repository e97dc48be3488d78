/** MCP 2026-07-28 requests by a client that declares the tasks extension (SEP-2663). */

const version = "2026-07-28"
const extensions = { "io.modelcontextprotocol/tasks": {} }

/** The body and the headers of a request. */
export const taskRequest = (
  method: string,
  params: Readonly<Record<string, unknown>>,
  { declares = true, name = params["taskId"] ?? params["name"] } = {}
) => ({
  body: {
    jsonrpc: "2.0",
    id: 1,
    method,
    params: {
      ...params,
      _meta: {
        "io.modelcontextprotocol/protocolVersion": version,
        "io.modelcontextprotocol/clientCapabilities": declares ? { extensions } : {}
      }
    }
  },
  headers: {
    "mcp-protocol-version": version,
    "mcp-method": method,
    ...(name === undefined ? {} : { "mcp-name": String(name) })
  }
})
