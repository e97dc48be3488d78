import { spawn } from "node:child_process"
import { existsSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "vitest"
import { signedDeliveries } from "../support/receiving.ts"
import { worlds } from "../support/worlds.ts"

const languages = import.meta.dirname

/** The programs of each environment. Programs that need different versions of a package use different environments. */
const environments: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  python: {
    openai: "with_openai.py",
    anthropic: "with_anthropic.py",
    cohere: "with_cohere.py",
    "google-genai": "with_google.py",
    "langchain-openai": "with_langchain.py",
    "pydantic-ai-slim": "with_pydantic_ai.py",
    mcp: "with_mcp.py",
    standardwebhooks: "with_standardwebhooks.py",
    svix: "with_svix.py"
  },
  instructor: { instructor: "with_instructor.py" },
  litellm: { litellm: "with_litellm.py" },
  generated: { "openapi-python-client": "with_generated.py" },
  schemathesis: { schemathesis: "with_schemathesis.py" }
}

/** Programs that verify deliveries. */
const verifiers = new Set(["with_standardwebhooks.py", "with_svix.py"])

const run = (folder: string, program: string, env: Readonly<Record<string, string>>) =>
  new Promise<{ readonly code: number | null; readonly output: string }>((resolve, reject) => {
    const cwd = join(languages, folder)
    const child = spawn(join(cwd, "node_modules", ".python", "bin", "python"), [program], {
      cwd,
      env: { PATH: process.env["PATH"], PYTHONDONTWRITEBYTECODE: "1", ...env }
    })
    let output = ""
    const note = (chunk: Buffer) => (output += chunk.toString())
    child.stdout.on("data", note)
    child.stderr.on("data", note)
    child.on("error", reject)
    child.on("close", (code) => resolve({ code, output }))
  })

describe.each(Object.entries(environments))("%s", (folder, programs) => {
  /** Without Python or PyPI there are no packages, and the programs are skipped. */
  const isInstalled = existsSync(join(languages, folder, "node_modules", ".python", ".installed"))
  if (!isInstalled) console.log(`Skipped: ${Object.keys(programs).join(", ")}: not installed here`)

  it.each(Object.entries(programs))(
    "%s has a pinned version, which its program prints",
    (name, program) => {
      const pins = readFileSync(join(languages, folder, "requirements.txt"), "utf8")
      assert.match(pins, new RegExp(`^${name}(?:\\[[a-z]+\\])?==\\d`, "mu"))
      const text = readFileSync(join(languages, folder, program), "utf8")
      assert.match(text, new RegExp(`shows\\("${name}"|version\\('${name}'\\)`, "u"))
    }
  )

  for (const { key, name: world, text, url } of isInstalled ? worlds() : []) {
    it.each(Object.entries(programs))(
      `%s from Python at ${world}`,
      { timeout: 600_000 },
      async (_, program) => {
        const env = {
          GATEWAY_URL: url,
          GATEWAY_API_KEY: key,
          ANSWER: text,
          WORLD: world,
          ...(verifiers.has(program)
            ? { DELIVERIES: JSON.stringify(await signedDeliveries()) }
            : {})
        }
        const { code, output } = await run(folder, program, env)
        console.log(output)
        assert.strictEqual(code, 0, output)
      }
    )
  }
})
