import { spawnSync } from "node:child_process"
import { join } from "node:path"
import { assert, describe, it } from "vitest"
import { worlds } from "../support/worlds.ts"

const made = join(import.meta.dirname, "go", "node_modules", ".go")

describe.each(worlds())("from Go at $name", ({ key, name, text, url }) => {
  it.each(["with_openai", "with_anthropic", "with_oapi_codegen"])(
    "%s",
    { timeout: 120_000 },
    (program) => {
      const env = { GATEWAY_URL: url, GATEWAY_API_KEY: key, ANSWER: text, WORLD: name }
      const { status, stderr, stdout } = spawnSync(join(made, program), { env, encoding: "utf8" })
      console.log(stdout)
      assert.strictEqual(status, 0, stderr)
    }
  )
})
