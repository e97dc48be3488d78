import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client"
import { createTaskSessionFromClient } from "@modelcontextprotocol/ext-tasks/client"

/** The official client of MCP 2026-07-28 with its tasks extension. docs/reference/mcp.md#tasks */

export const version = "2026-07-28"
const info = { name: "test", version: "1.0.0" }
const capabilities = { extensions: { "io.modelcontextprotocol/tasks": {} } }

export interface Server {
  readonly url: string
  readonly key: string
}

const headersOf = ({ key }: Server) => ({ authorization: `Bearer ${key}` })

/** A client that declares the extension. */
export const connectTasks = async (server: Server): Promise<Client> => {
  const client = new Client(info, { capabilities, versionNegotiation: { mode: { pin: version } } })
  const requestInit = { headers: headersOf(server) }
  await client.connect(
    new StreamableHTTPClientTransport(new URL(`${server.url}/mcp`), { requestInit })
  )
  return client
}

/** Sends a request unchanged. The client itself does not yet accept tasks as results of calls. */
const dispatchTo =
  (server: Server) => async (request: unknown, options?: { readonly signal?: AbortSignal }) => {
    const { method, params } = request as {
      readonly method: string
      readonly params?: { readonly name?: string; readonly taskId?: string }
    }
    const response = await fetch(`${server.url}/mcp`, {
      method: "POST",
      headers: {
        ...headersOf(server),
        "content-type": "application/json",
        accept: "application/json, text/event-stream",
        "mcp-protocol-version": version,
        "mcp-method": method,
        "mcp-name": params?.taskId ?? params?.name ?? ""
      },
      body: JSON.stringify({ jsonrpc: "2.0", id: crypto.randomUUID(), ...(request as object) }),
      ...(options?.signal === undefined ? {} : { signal: options.signal })
    })
    const { error, result } = (await response.json()) as { error?: unknown; result?: unknown }
    return (error === undefined ? { kind: "result", result } : { kind: "error", error }) as never
  }

export const taskSession = (client: Client, server: Server) =>
  createTaskSessionFromClient(client as never, {
    endpointId: "gateway",
    rawDispatch: dispatchTo(server),
    v2RequestFraming: {
      protocolVersion: version,
      clientInfo: info,
      clientCapabilities: capabilities
    }
  })
