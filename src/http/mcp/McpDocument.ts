import { mcpBatchMax } from "../../domain/ShapeLimits.ts"
import { everyResponse, jsonContent, problems } from "../openapi/OpenApiParts.ts"
import type { Json } from "../openapi/OpenApiParts.ts"
import { protocolVersions } from "./Versions.ts"

const id = { type: ["string", "integer"] }

const message = {
  type: "object",
  required: ["jsonrpc"],
  properties: {
    jsonrpc: { type: "string", enum: ["2.0"] },
    id,
    method: { type: "string" },
    params: { type: "object" }
  },
  additionalProperties: true
}

const response = {
  type: "object",
  required: ["jsonrpc", "id"],
  properties: {
    jsonrpc: { type: "string", enum: ["2.0"] },
    id: { type: ["string", "integer", "null"] },
    result: { type: "object" },
    error: {
      type: "object",
      required: ["code", "message"],
      properties: { code: { type: "integer" }, message: { type: "string" }, data: {} }
    }
  }
}

/** What may come beside a list of responses to a batch. */
const responses = { anyOf: [response, { type: "array", items: response }] }

/** MCP, of which the tools themselves are not part of this document. docs/reference/mcp.md */
export const mcpPaths: Json = {
  "/mcp": {
    post: {
      tags: ["Gateway"],
      security: [{ bearer: [] }],
      operationId: "mcp",
      summary: "Model Context Protocol: the gateway as tools of a language model",
      description:
        "Transport Streamable HTTP, without sessions and streams. `tools/list` describes the tools. Also a JSON-RPC error may come with the status 400 or 404",
      parameters: [
        {
          name: "MCP-Protocol-Version",
          in: "header",
          required: false,
          description: "Without it 2025-03-26",
          schema: { type: "string", enum: protocolVersions }
        }
      ],
      requestBody: {
        required: true,
        ...jsonContent(
          { anyOf: [message, { type: "array", items: message, maxItems: mcpBatchMax }] },
          { jsonrpc: "2.0", id: 1, method: "tools/list" }
        )
      },
      responses: {
        200: {
          description: "The response, also when a tool has failed (`isError`)",
          headers: everyResponse,
          ...jsonContent(responses, { jsonrpc: "2.0", id: 1, result: { tools: [] } })
        },
        202: { description: "Notifications were taken", headers: everyResponse },
        ...problems(400, 401, 403, 404, 405, 408, 413, 415, 429, 431, 500, 503)
      }
    }
  }
}
