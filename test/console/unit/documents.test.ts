import { readFileSync } from "node:fs"
import { assert, describe, it } from "vitest"

const document: { readonly tags: ReadonlyArray<{ readonly name: string }> } = JSON.parse(
  readFileSync("schema/openapi.json", "utf8")
)
const routes = readFileSync("src/console/routes.ts", "utf8")

describe("the documentation links of the console's pages", () => {
  it("lead to sections of the API's document", () => {
    const sections = document.tags.map(({ name }) => name.toLowerCase().replaceAll(" ", "-"))
    const named = [...routes.matchAll(/docs: "([\w-]+)"/gu)].map(([, docs = ""]) => docs)
    assert.isAbove(named.length, 15)
    for (const docs of named) assert.include(sections, docs)
  })
})
