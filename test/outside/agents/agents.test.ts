import { randomBytes } from "node:crypto"
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { startVendorServer } from "../../../src/testing/index.ts"
import type { VendorServer } from "../../../src/testing/index.ts"
import { GatewayProcess } from "../../support/gatewayProcess.ts"
import { worlds } from "../support/worlds.ts"
import { adapters } from "./adapters.ts"
import { agents, hasAider, isShown } from "./agents.ts"
import type { Agent, Run } from "./agents.ts"
import { dialogue, done, taskIn } from "./dialogue.ts"

/** docs/agents.md: each agent as its own documentation says, with base URL and key and nothing else. */

let vendors: ReadonlyArray<VendorServer>
let gateway: GatewayProcess
let folder: string
/** The key of a user without credits. */
let emptyKey: string

beforeAll(async () => {
  vendors = await Promise.all(
    (["openai", "anthropic", "gemini"] as const).map((vendor) =>
      startVendorServer(vendor, { answer: dialogue })
    )
  )
  gateway = await GatewayProcess.start({
    env: Object.assign({}, ...vendors.map(({ env }) => env))
  })
  folder = await mkdtemp(join(tmpdir(), "agents-"))
  const user = await gateway.manage("POST", "/users", { email: "empty@example.com" })
  const key = { name: "empty", scopes: ["inference"] }
  emptyKey = (await gateway.manage("POST", `/users/${user.json.id}/api-keys`, key)).json.key
})

afterAll(async () => {
  await gateway.close()
  for (const vendor of vendors) await vendor.stop()
  await rm(folder, { recursive: true, force: true })
})

const begin = async (
  { name, run }: Agent,
  to: Pick<Run, "url" | "key" | "until">,
  directive = ""
) => {
  const cwd = await mkdtemp(join(folder, "work-"))
  const token = `token-${randomBytes(4).toString("hex")}`
  await writeFile(join(cwd, "input.txt"), token)
  await writeFile(join(cwd, "output.txt"), "")
  // Its settings and caches, shared by all runs
  const home = join(folder, name)
  await mkdir(home, { recursive: true })
  const { code, output } = await run({ ...to, cwd, home, prompt: `${taskIn(cwd)}${directive}` })
  const written = await readFile(join(cwd, "output.txt"), "utf8")
  return { code, output, token, written: written.trim() }
}

if (!hasAider) console.log("Skipped: aider, which cannot be installed here")

describe.each([...agents, ...adapters])("$name $version", { timeout: 120_000 }, (agent) => {
  it("reads a file and writes another one through tool calls", async () => {
    console.log(`${agent.name} ${agent.version}`)
    const { code, output, token, written } = await begin(agent, {
      url: gateway.url,
      key: await gateway.key()
    })
    assert.strictEqual(written, token, output)
    assert.include(output, done)
    assert.strictEqual(code, 0, output)
  })

  it("gets its answer in the sandbox", async () => {
    const sandbox = worlds().find(({ name }) => name === "the sandbox")!
    const directive = agent.tool === undefined ? "" : ` [[sim:tool=${agent.tool}]]`
    const { code, output } = await begin(agent, sandbox, directive)
    assert.isTrue(isShown(output, sandbox.text), output)
    assert.strictEqual(code, 0, output)
  })

  const refusals = [
    ["a wrong key", () => "sk-wrong", "API key is malformed"],
    ["an empty wallet", () => emptyKey, "The available balance is lower than the "]
  ] as const
  it.each(refusals)(
    "shows the gateway's message at once for %s, and no vendor is called",
    async (_, key, detail) => {
      const before = vendors.map(({ sold }) => sold)
      const to = { url: gateway.url, key: key(), until: detail }
      const { output, written } = await begin(agent, to)
      assert.isTrue(isShown(output, detail), output)
      assert.strictEqual(written, "")
      assert.deepEqual(
        vendors.map(({ sold }) => sold),
        before
      )
    }
  )
})
