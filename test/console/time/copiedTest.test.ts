import { assert, describe, it, layer } from "@effect/vitest"
import { Effect } from "effect"
import { readFileSync } from "node:fs"
import { testOf } from "../../../src/console/pages/task/testOf.ts"
import { layerTest, MockVendor, TestGateway } from "../../../src/testing/index.ts"
import { failedTask, timeline } from "../../support/consoleData.ts"

/** The names that the text imports, from this file. */
const names = { assert, layer, Effect, layerTest, MockVendor, TestGateway }

const split = (text: string) => {
  const imports = [...text.matchAll(/^import \{ (.*) \} from "(.*)"$/gmu)]
  return {
    imported: imports.map(([, what, from]) => [what, from]),
    rest: text.replaceAll(/^import .*$/gmu, "")
  }
}

/** Registers the tests in the text as tests of this file. */
const register = (text: string) => {
  // oxlint-disable-next-line no-implied-eval, typescript/no-implied-eval, no-new-func -- it is run as it was copied
  new Function(...Object.keys(names), split(text).rest)(...Object.values(names))
}

describe("a task copied as a test", () => {
  const copied = testOf(failedTask)

  // With a vendor that refuses once and then fails, the text runs and asserts the same
  register(copied)

  it("imports what docs/developing.md documents", () => {
    const documented = readFileSync(new URL("../../../docs/developing.md", import.meta.url), "utf8")
    for (const [what = "", from] of split(copied).imported) {
      for (const name of what.split(", ")) {
        assert.match(
          documented,
          new RegExp(`^import \\{.*\\b${name}\\b.*\\} from "${from}"$`, "mu")
        )
      }
    }
  })

  it("lists the vendor's steps in order, and quotes prompts and messages as strings", () => {
    assert.include(
      copied,
      `vendor: [MockVendor.refused("RATE_LIMITED", "as the vendor refused it"), MockVendor.jobFails("FAILED", "The job broke", "4 seconds")]`
    )
    const prompt = "`${1}` \"'</script> \\n"
    const other = testOf({ ...timeline, body: { prompt } })
    assert.include(other, JSON.stringify(prompt))
    assert.include(other, `MockVendor.result("3 seconds")`)
  })
})
