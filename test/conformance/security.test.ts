import { assert, describe, it } from "@effect/vitest"
import { readFileSync } from "node:fs"

/** SECURITY.md#threats: every threat has a mitigation, and tests that exist and assert something. */

const text = readFileSync("SECURITY.md", "utf8")
const section = text.split("\n## ").find((it) => it.startsWith("Threats")) ?? ""
const threats = section
  .split("\n")
  .filter((line) => line.startsWith("| T"))
  .map((line) => line.split(" | ").map((cell) => cell.replaceAll(/^\| | \|$/gu, "").trim()))

describe("the threat model", () => {
  it("numbers its threats without a gap", () => {
    assert.isAtLeast(threats.length, 20)
    assert.deepStrictEqual(
      threats.map(([id]) => id),
      threats.map((_, at) => `T${at + 1}`)
    )
  })

  for (const [id, threat = "", mitigation = "", tests = "", ...more] of threats) {
    it(`names a mitigation and tests for ${id}: ${threat}`, () => {
      assert.deepStrictEqual(more, [])
      assert.isAtLeast(mitigation.length, 20)
      const links = [...tests.matchAll(/\[(\w+)\]\((test\/[\w/]+\.test\.ts)\)/gu)]
      assert.isNotEmpty(links)
      assert.strictEqual(links.map(([whole]) => whole).join(", "), tests)
      for (const [, name = "", file = ""] of links) {
        assert.match(file, new RegExp(`/${name}\\.test\\.ts$`, "u"))
        const source = readFileSync(file, "utf8")
        assert.match(source, /\bit(?:\.\w+)*\(/u, file)
        assert.match(source, /\bassert\w*[.(]/u, file)
      }
    })
  }
})
