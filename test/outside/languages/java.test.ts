import { spawnSync } from "node:child_process"
import { join } from "node:path"
import { assert, describe, it } from "vitest"
import { worlds } from "../support/worlds.ts"

const made = join(import.meta.dirname, "java", "node_modules", ".java")

describe.each(worlds())("from Java at $name", ({ key, name, text, url }) => {
  it.each(["WithOpenai", "WithGenerated"])("%s", { timeout: 300_000 }, (program) => {
    const env = {
      PATH: process.env["PATH"],
      GATEWAY_URL: url,
      GATEWAY_API_KEY: key,
      ANSWER: text,
      WORLD: name
    }
    const classes = `${join(made, "classes")}:${join(made, "lib", "*")}`
    const { error, status, stderr, stdout } = spawnSync("java", ["-cp", classes, program], {
      env,
      encoding: "utf8"
    })
    console.log(stdout)
    assert.strictEqual(status, 0, error?.message ?? stderr)
  })
})
