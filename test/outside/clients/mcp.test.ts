import {
  Client as NextClient,
  StreamableHTTPClientTransport as NextTransport
} from "@modelcontextprotocol/client"
import { resultFromTaskOutcome } from "@modelcontextprotocol/ext-tasks/client"
import { Client } from "@modelcontextprotocol/sdk/client/index.js"
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js"
import { Ajv2020 } from "ajv/dist/2020.js"
import { assert, describe, expect, it } from "vitest"
import { connectTasks, taskSession } from "../support/mcpTasks.ts"
import { newKey, worlds } from "../support/worlds.ts"

const shared = worlds().find(({ name }) => name === "the sandbox")!
// A wallet without the holds of other files
const world = { ...shared, key: await newKey(shared) }
const url = new URL(`${world.url}/mcp`)
const info = { name: "test", version: "1.0.0" }
const requestInitOf = (key: string) => ({ headers: { authorization: `Bearer ${key}` } })

interface ToolResult {
  readonly isError?: boolean
  readonly content: ReadonlyArray<Record<string, string>>
  // oxlint-disable-next-line typescript/no-explicit-any -- a test asserts what is in it
  readonly structuredContent?: any
}

interface Connected {
  readonly version: string | undefined
  readonly tools: () => Promise<ReadonlyArray<{ name: string; inputSchema: object }>>
  readonly call: (name: string, args: Record<string, unknown>) => Promise<ToolResult>
  readonly close: () => Promise<void>
}

const connect = async (key = world.key): Promise<Connected> => {
  const client = new Client(info)
  const transport = new StreamableHTTPClientTransport(url, { requestInit: requestInitOf(key) })
  await client.connect(transport as never)
  assert.isUndefined(transport.sessionId)
  return {
    version: transport.protocolVersion,
    tools: async () => (await client.listTools()).tools,
    call: async (name, args) => (await client.callTool({ name, arguments: args })) as never,
    close: () => client.close()
  }
}

type Mode = "legacy" | "auto" | { readonly pin: string }

const connectNext =
  (mode: Mode) =>
  async (key = world.key): Promise<Connected> => {
    const client = new NextClient(info, { versionNegotiation: { mode } })
    await client.connect(new NextTransport(url, { requestInit: requestInitOf(key) }))
    return {
      version: client.getNegotiatedProtocolVersion(),
      tools: async () => (await client.listTools()).tools,
      call: async (name, args) => (await client.callTool({ name, arguments: args })) as never,
      close: () => client.close()
    }
  }

/** The official clients with their defaults, and each way in which they agree on a version. */
const clients = [
  { name: "sdk 1.x", version: "2025-11-25", connect },
  { name: "client 2.x", version: "2025-11-25", connect: connectNext("legacy") },
  { name: "client 2.x, auto", version: "2026-07-28", connect: connectNext("auto") },
  {
    name: "client 2.x, pinned",
    version: "2026-07-28",
    connect: connectNext({ pin: "2026-07-28" })
  }
]

const problemOf = ({ content, isError }: ToolResult) => {
  assert.isTrue(isError)
  return JSON.parse(content[0]!["text"]!)
}

/** docs/reference/mcp.md */
describe.each(clients)("$name", ({ connect, name, version }) => {
  it("lists the tools, calls each one, and buys an image once", async () => {
    const client = await connect()
    assert.strictEqual(client.version, version)
    const tools = await client.tools()
    assert.lengthOf(tools, 7)
    const ajv = new Ajv2020({ strict: false, formats: { uuid: true, "date-time": true } })
    for (const { inputSchema } of tools) ajv.compile(inputSchema)
    const before = await client.call("wallet", {})
    const listed = await client.call("list_models", { model: "text-to-image-max" })
    const [{ input_schema, model }] = listed.structuredContent.models
    const input = { prompt: `A lighthouse for ${name}` }
    assert.isTrue(ajv.validate(input_schema, input))
    const quoted = await client.call("quote", { model, input })
    assert.strictEqual(quoted.structuredContent.amount, "7.50")
    const args = { model, input, metadata: { client: name } }
    const created = await client.call("create_task", args)
    const { task_id } = created.structuredContent
    // Another connection numbers its messages from the start again
    const other = await connect()
    const again = await other.call("create_task", args)
    await other.close()
    assert.deepInclude(again.structuredContent, { task_id, replayed: true })
    const ended = await client.call("get_task", { task_id, wait_seconds: 30 })
    assert.strictEqual(ended.structuredContent.status, "completed")
    const [, link, image] = ended.content
    assert.strictEqual(link!["type"], "resource_link")
    assert.strictEqual(image!["type"], "image")
    const bytes = Buffer.from(image!["data"]!, "base64")
    assert.strictEqual(bytes.toString("latin1", 1, 4), "PNG")
    const linked = await fetch(link!["uri"]!)
    assert.deepStrictEqual(Buffer.from(await linked.arrayBuffer()), bytes)
    const after = await client.call("wallet", {})
    const spent = [before, after].map((it) => Number(it.structuredContent.settled_balance))
    assert.strictEqual(spent[0]! - spent[1]!, 7.5)
    assert.strictEqual(problemOf(await client.call("cancel_task", { task_id })).code, 2010)
    const explained = await client.call("explain_delivery", { id: task_id })
    assert.isString(explained.structuredContent.explanation)
    await client.close()
  })

  it("shows the faults of a call to the model, and those of the key to the user", async () => {
    const client = await connect()
    const wrong = problemOf(
      await client.call("create_task", { model: "text-to-image-max", input: { promt: "x" } })
    )
    assert.deepInclude(wrong, { code: 2001, status: 400 })
    assert.sameMembers(
      wrong.errors.map(({ pointer }: { pointer: string }) => pointer),
      ["#/input/prompt", "#/input/promt"]
    )
    await expect(client.call("no_such_tool", {})).rejects.toThrow(/Unknown tool/u)
    await client.close()
    await expect(connect("sk-wrong")).rejects.toThrow(/401|1002|[Uu]nauthorized/u)
  })
})

/** docs/reference/mcp.md#tasks */
describe("client 2.x with the official package of the tasks extension", () => {
  it("calls a tool whose result is a task, and cancels another", async () => {
    const client = await connectTasks(world)
    assert.property(client.getServerCapabilities()?.extensions, "io.modelcontextprotocol/tasks")
    const session = taskSession(client, world)
    const call = (prompt: string) =>
      session.callTool("create_task", { model: "text-to-image-max", input: { prompt } })
    const { outcome } = await (await call("A lighthouse, as a task of MCP")).settle()
    const { content, structuredContent } = resultFromTaskOutcome(outcome) as unknown as ToolResult
    assert.strictEqual(structuredContent.status, "completed")
    assert.deepEqual(
      content.map(({ type }) => type),
      ["text", "resource_link", "image"]
    )
    const other = await call("[[sim:hang]] A lighthouse")
    await other.cancel()
    const { structuredContent: wallet } = (await client.callTool({
      name: "wallet",
      arguments: {}
    })) as unknown as ToolResult
    assert.strictEqual(wallet.held_balance, "0.00")
    await session.close()
    await client.close()
  })
})
