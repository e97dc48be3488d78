import { Client } from "@modelcontextprotocol/sdk/client/index.js"
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js"
import { execFile } from "node:child_process"
import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { until } from "../../support/until.ts"
import { startOAuthGateway } from "../support/oauthGateway.ts"
import { modules, versionOf } from "./installed.ts"

/** MCP's official inspector, and the bridge for clients that can only start programs. docs/reference/mcp.md */

let world: Awaited<ReturnType<typeof startOAuthGateway>>
let key: string
/** Where the programs store their settings and tokens. */
let home: string

beforeAll(async () => {
  world = await startOAuthGateway()
  key = await world.gateway.key()
  home = await mkdtemp(join(tmpdir(), "mcp-"))
})
afterAll(async () => {
  await world.close()
  await rm(home, { recursive: true, force: true })
})

const url = () => `${world.gateway.url}/mcp`
const model = "alibaba/text-to-image-max"
const tools = [
  "list_models",
  "quote",
  "create_task",
  "get_task",
  "cancel_task",
  "wallet",
  "explain_delivery"
]

interface Ended {
  readonly code: number
  readonly stdout: string
  readonly stderr: string
}

/** Runs the inspector's command line. */
const inspect = (authorization: string, ...words: ReadonlyArray<string>) =>
  new Promise<Ended>((resolve) => {
    const program = join(modules, "@modelcontextprotocol/inspector/clients/launcher/build/index.js")
    const given = ["--cli", url(), "--transport", "http", "--header", authorization, ...words]
    const env = { PATH: process.env["PATH"], HOME: home }
    execFile(process.execPath, [program, ...given], { env }, (error, stdout, stderr) =>
      resolve({ code: Number(error?.code ?? 0), stdout, stderr })
    )
  })

describe.each(["legacy", "modern"])(
  `the inspector ${versionOf("@modelcontextprotocol/inspector")}, %s protocol`,
  (era) => {
    const authorization = () => `Authorization: Bearer ${key}`
    const spoken = ["--protocol-era", era]

    const call = async (name: string, args: object) => {
      const words = ["--tool-name", name, "--tool-args-json", JSON.stringify(args)]
      const ended = await inspect(authorization(), ...spoken, "--method", "tools/call", ...words)
      assert.strictEqual(ended.code, 0, ended.stderr)
      return JSON.parse(ended.stdout).structuredContent
    }

    it("finds no fault in the schemas of the tools", async () => {
      const listed = await inspect(authorization(), ...spoken, "--method", "tools/list", "--strict")
      assert.strictEqual(listed.code, 0, listed.stderr)
      assert.strictEqual(listed.stderr, "")
      const names = JSON.parse(listed.stdout).tools.map((tool: { name: string }) => tool.name)
      assert.deepStrictEqual(names, tools)
    })

    it("creates a task and waits for it", async () => {
      const { task_id } = await call("create_task", { model, input: { prompt: "A quay" } })
      const { status } = await call("get_task", { task_id, wait_seconds: 30 })
      assert.strictEqual(status, "completed")
    })

    it("is refused with a wrong key", async () => {
      const words = [...spoken, "--method", "tools/list", "--stored-auth-only"]
      const ended = await inspect("Authorization: Bearer sk-wrong", ...words)
      assert.notStrictEqual(ended.code, 0)
      assert.include(ended.stderr, "auth")
    })
  }
)

/** A client that connects through the bridge, which prints to stderr. */
const bridge = (env: Readonly<Record<string, string>>, ...words: ReadonlyArray<string>) => {
  const transport = new StdioClientTransport({
    command: process.execPath,
    args: [join(modules, ".bin/mcp-remote"), url(), "--transport", "http-only", ...words],
    env: { PATH: process.env["PATH"]!, HOME: home, ...env },
    stderr: "pipe"
  })
  return { transport, client: new Client({ name: "test", version: "1.0.0" }) }
}

/** Uses the gateway through the bridge. */
const use = async (client: Client) => {
  const listed = await client.listTools()
  assert.deepStrictEqual(
    listed.tools.map(({ name }) => name),
    tools
  )
  const quoted = await client.callTool({
    name: "quote",
    arguments: { model, input: { prompt: "A pier" } }
  })
  assert.deepInclude(quoted.structuredContent, { amount: "7.50" })
}

describe(`mcp-remote ${versionOf("mcp-remote")}`, () => {
  it("works with a key", async () => {
    // The bridge replaces the variable, because some clients split words at spaces
    const header = "Authorization:${AUTHORIZATION}"
    const env = { AUTHORIZATION: `Bearer ${key}` }
    const { client, transport } = bridge(env, "--header", header)
    await client.connect(transport as never)
    await use(client)
    await client.close()
  })

  it("finds the provider, opens the browser and works with the token", async () => {
    const { client, transport } = bridge({})
    let printed = ""
    let isOpened = false
    transport.stderr!.on("data", (bytes: Buffer) => {
      printed += bytes.toString()
      const address = /visiting:\s+(http\S+)\s/u.exec(printed)?.[1]
      if (address === undefined || isOpened) return
      isOpened = true
      // It prints the address before it listens for the browser's return
      void world.provider.walk(address).then((back) =>
        until(() =>
          fetch(back).then(
            ({ ok }) => ok,
            () => false
          )
        )
      )
    })
    await client.connect(transport as never)
    await use(client)
    assert.isTrue(isOpened, printed)
    await client.close()
  })
})
