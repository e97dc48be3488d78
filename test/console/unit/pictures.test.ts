import { readdirSync, readFileSync } from "node:fs"
import { assert, describe, it } from "vitest"
import { routes } from "../../../src/console/routes.ts"
import { pictures } from "../../support/consoleData.ts"

const docs = new URL("../../../docs/", import.meta.url)
const remedy = "add it to `pictures` in test/support/consoleData.ts, and run npm run pictures"
const bytesMax = 60_000

describe("the pictures of docs/console.md", () => {
  const page = readFileSync(new URL("console.md", docs), "utf8")

  it("there is one of every page", () => {
    const shown = new Set(pictures.map(({ route }) => route))
    const missing = routes.map(({ path }) => path).filter((path) => !shown.has(path))
    assert.deepStrictEqual(missing, [], remedy)
  })

  it("each is there, small, and shown with a text", () => {
    const names = pictures.map(({ name }) => `${name}.png`)
    assert.sameMembers(readdirSync(new URL("pictures/", docs)), names, remedy)
    for (const name of names) {
      const bytes = readFileSync(new URL(`pictures/${name}`, docs))
      assert.strictEqual(bytes.toString("latin1", 1, 4), "PNG", name)
      assert.isBelow(bytes.length, bytesMax, name)
      assert.match(page, new RegExp(`!\\[[^\\]]+\\]\\(pictures/${name}\\)`, "u"))
    }
  })
})
