import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema } from "effect/http-api"
import { mcpBatchMax } from "../domain/limits/ShapeLimits.ts"
import { InferenceKey } from "./Access.ts"
import { documented } from "./Documented.ts"
import { problems } from "./Problems.ts"

/** Protocol versions, newest first. docs/reference/mcp.md#versions */
export const protocolVersions = ["2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26"] as const

const open = Schema.Record(Schema.String, Schema.Unknown)
const Id = Schema.Union([Schema.String, Schema.Int])

const Message = Schema.StructWithRest(
  Schema.Struct({
    jsonrpc: Schema.Literal("2.0"),
    id: Schema.optionalKey(Id),
    method: Schema.optionalKey(Schema.String),
    params: Schema.optionalKey(open)
  }),
  [open]
)

const Response = Schema.Struct({
  jsonrpc: Schema.Literal("2.0"),
  id: Schema.NullOr(Id),
  result: Schema.optionalKey(open),
  error: Schema.optionalKey(
    Schema.Struct({
      code: Schema.Int,
      message: Schema.String,
      data: Schema.optionalKey(Schema.Unknown)
    })
  )
})

/** The tools are declared in `McpTools` and described by `tools/list`. */
export const callMcp = HttpApiEndpoint.post("mcp", "/mcp", {
  headers: {
    "MCP-Protocol-Version": Schema.optionalKey(
      Schema.Literals(protocolVersions).annotate({ description: "Without it 2025-03-26" })
    )
  },
  payload: Schema.Union([Message, Schema.Array(Message).check(Schema.isMaxLength(mcpBatchMax))]),
  success: [Schema.Union([Response, Schema.Array(Response)]), HttpApiSchema.Accepted],
  error: problems(400, 401, 403, 404, 405, 408, 413, 415, 429, 431, 500, 502, 503)
}).annotateMerge(
  documented({
    summary: "Model Context Protocol: the gateway as tools of a language model",
    description:
      "Transport Streamable HTTP, without sessions and streams. `tools/list` describes the tools. JSON-RPC errors may also have the status 400 or 404",
    example: { jsonrpc: "2.0", id: 1, method: "tools/list" },
    responses: {
      200: {
        description: "The response, also when a tool has failed (`isError`)",
        example: { jsonrpc: "2.0", id: 1, result: { tools: [] } }
      },
      202: { description: "The notifications were accepted" }
    }
  })
)

/** docs/reference/mcp.md */
export class McpApi extends HttpApiGroup.make("mcp", { topLevel: true })
  .add(callMcp)
  .middleware(InferenceKey) {}
