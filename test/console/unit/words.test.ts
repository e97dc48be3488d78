import { globSync, readFileSync } from "node:fs"
import { assert, describe, it } from "vitest"

/** docs/console-design.md#words */
const texts = globSync("src/console/texts/**/*.ts")
  .map((name) => readFileSync(name, "utf8"))
  .join("\n")

describe("the words of the console", () => {
  it("include the field's standard terms", () => {
    for (const word of [
      "New chat",
      "Refresh",
      "Code",
      "Done",
      "Resets",
      "Released",
      "Non-2xx response",
      "View task",
      "System",
      "/ image"
    ]) {
      assert.include(texts, `"${word}"`)
    }
  })

  it("exclude private terms for the same things", () => {
    assert.notMatch(
      texts,
      /begins? anew|read again|by program|have kept it|given back|status of success|"its task|as the system|"an image/iu
    )
  })
})
