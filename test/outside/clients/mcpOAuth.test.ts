import {
  Client as NextClient,
  StreamableHTTPClientTransport as NextTransport
} from "@modelcontextprotocol/client"
import { Client } from "@modelcontextprotocol/sdk/client/index.js"
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js"
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { program as registered } from "../../support/oidcProvider.ts"
import { startOAuthGateway } from "../support/oauthGateway.ts"

/** The official clients discover the provider, register there, and get tokens. docs/reference/mcp.md#oauth */

const [redirectUrl] = registered.redirect_uris

let world: Awaited<ReturnType<typeof startOAuthGateway>>
beforeAll(async () => {
  world = await startOAuthGateway()
})
afterAll(() => world.close())

/** What a program stores about its authorization, and the browser that it opens. */
const makeProgram = (client?: { readonly client_id: string }) => {
  const kept: Record<string, unknown> = { client }
  const scopes: Array<string | null> = []
  let back: URL | undefined
  return {
    scopes,
    /** The address at which the browser arrived. */
    back: () => back!,
    authProvider: {
      redirectUrl,
      clientMetadata: {
        client_name: "test",
        redirect_uris: [redirectUrl],
        token_endpoint_auth_method: "none"
      },
      clientInformation: () => kept["client"],
      saveClientInformation: (it: unknown) => void (kept["client"] = it),
      tokens: () => kept["tokens"],
      saveTokens: (it: unknown) => void (kept["tokens"] = it),
      codeVerifier: () => kept["verifier"],
      saveCodeVerifier: (it: string) => void (kept["verifier"] = it),
      discoveryState: () => kept["discovery"],
      saveDiscoveryState: (it: unknown) => void (kept["discovery"] = it),
      redirectToAuthorization: async (url: URL) => {
        scopes.push(url.searchParams.get("scope"))
        assert.strictEqual(url.searchParams.get("resource"), `${world.gateway.url}/mcp`)
        back = await world.provider.walk(url.href)
      }
    }
  }
}

type Program = ReturnType<typeof makeProgram>

const info = { name: "test", version: "1.0.0" }
const mcp = () => new URL(`${world.gateway.url}/mcp`)

/** A connection of the program, and how it continues once the browser has returned. */
const clients = {
  "sdk 1.x": (program: Program) => {
    const client = new Client(info)
    const authProvider = program.authProvider as never
    const transport = new StreamableHTTPClientTransport(mcp(), { authProvider })
    return {
      connect: () => client.connect(transport as never),
      finish: () => transport.finishAuth(program.back().searchParams.get("code")!),
      call: (name: string, args: object) =>
        client.callTool({ name, arguments: { ...args } }) as Promise<never>,
      close: () => client.close()
    }
  },
  "client 2.x": (program: Program) => {
    const client = new NextClient(info, { versionNegotiation: { mode: "auto" } })
    const authProvider = program.authProvider as never
    const transport = new NextTransport(mcp(), { authProvider })
    return {
      connect: () => client.connect(transport),
      finish: () => transport.finishAuth(program.back().searchParams),
      call: (name: string, args: object) =>
        client.callTool({ name, arguments: { ...args } }) as Promise<never>,
      close: () => client.close()
    }
  }
}

interface Result {
  readonly isError?: boolean
  // oxlint-disable-next-line typescript/no-explicit-any -- a test asserts what is in it
  readonly structuredContent?: any
}

const failureOf = async (run: Promise<unknown>): Promise<string> => {
  try {
    await run
  } catch (cause) {
    return cause instanceof Error ? `${cause.name} ${cause.message}` : String(cause)
  }
  return assert.fail("expected to be sent to the provider")
}

describe.each(Object.entries(clients))("%s", (name, make) => {
  /** A connection made after the browser returned. */
  const connect = async (program: Program) => {
    const first = make(program)
    assert.include(await failureOf(first.connect()), "Unauthorized")
    assert.deepStrictEqual(program.scopes, ["inference"])
    await first.finish()
    const client = make(program)
    await client.connect()
    return client
  }

  it("registers at the provider, gets a token and buys with it", async () => {
    const client = await connect(makeProgram())
    const model = "alibaba/text-to-image-max"
    const input = { prompt: `A quay for ${name}` }
    const created: Result = await client.call("create_task", { model, input })
    const { task_id } = created.structuredContent
    const ended: Result = await client.call("get_task", { task_id, wait_seconds: 30 })
    assert.strictEqual(ended.structuredContent.status, "completed")
    await client.close()
  })

  it("asks for another scope when a tool needs it, and keeps the first", async () => {
    const program = makeProgram(registered)
    const client = await connect(program)
    await failureOf(client.call("wallet", {}))
    assert.sameMembers(program.scopes.at(-1)!.split(" "), ["inference", "manage"])
    await client.finish()
    const wallet: Result = await client.call("wallet", {})
    assert.match(wallet.structuredContent.settled_balance, /^\d+\.\d\d$/u)
    const quoted: Result = await client.call("quote", {
      model: "alibaba/text-to-image-max",
      input: { prompt: "A pier" }
    })
    assert.strictEqual(quoted.structuredContent.amount, "7.50")
    await client.close()
  })
})
