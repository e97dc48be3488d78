import { spawn } from "node:child_process"
import { existsSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "vitest"
import { worlds } from "../support/worlds.ts"

const folder = import.meta.dirname
const environment = join(folder, "node_modules", ".python")

/** Without Python or PyPI there are no packages: then their programs are left out. */
const isInstalled = existsSync(join(environment, ".installed"))
if (!isInstalled) console.log("Skipped: Python's clients, which cannot be installed here")

const run = (program: string, env: Readonly<Record<string, string>>) =>
  new Promise<{ readonly code: number | null; readonly output: string }>((resolve, reject) => {
    const child = spawn(join(environment, "bin", "python"), [program], {
      cwd: join(folder, "python"),
      env: { PATH: process.env["PATH"], PYTHONDONTWRITEBYTECODE: "1", ...env }
    })
    let output = ""
    const note = (chunk: Buffer) => (output += chunk.toString())
    child.stdout.on("data", note)
    child.stderr.on("data", note)
    child.on("error", reject)
    child.on("close", (code) => resolve({ code, output }))
  })

const programs = {
  openai: "with_openai.py",
  anthropic: "with_anthropic.py",
  "google-genai": "with_google.py"
}

it.each(Object.entries(programs))(
  "%s has a pinned version, which its program prints",
  (name, program) => {
    const pins = readFileSync(join(folder, "requirements.txt"), "utf8")
    assert.match(pins, new RegExp(`^${name}==\\d`, "mu"))
    assert.include(readFileSync(join(folder, "python", program), "utf8"), `shows("${name}")`)
  }
)

describe.each(isInstalled ? worlds() : [])(
  "from Python at $name",
  { timeout: 120_000 },
  ({ key, name, text, url }) => {
    it.each(Object.entries(programs))("%s", async (_, program) => {
      const env = { GATEWAY_URL: url, GATEWAY_KEY: key, ANSWER: text, WORLD: name }
      const { code, output } = await run(program, env)
      console.log(output)
      assert.strictEqual(code, 0, output)
    })
  }
)
