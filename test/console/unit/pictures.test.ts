import { readdirSync, readFileSync } from "node:fs"
import { assert, describe, it } from "vitest"
import { screens } from "../../support/consoleData.ts"
import { madeOf, pictureSource } from "../pictures/pictureSource.ts"

/** Read from the file, because importing it would load all pages. */
const routes = [
  ...readFileSync(new URL("../../../src/console/routes.ts", import.meta.url), "utf8").matchAll(
    /^\s+path: "(.*)",$/gmu
  )
].map(([, path = ""]) => path)

const docs = new URL("../../../docs/", import.meta.url)
const remedy = "see `screens` in test/support/consoleData.ts, and run npm run pictures"
const bytesMax = 60_000

describe("the pictures of docs/console.md", () => {
  const page = readFileSync(new URL("console.md", docs), "utf8")

  it("can show every page, with `npm run pictures -- folder`", () => {
    const shown = new Set(screens.map(({ route }) => route))
    assert.isAbove(routes.length, 10)
    const missing = routes.filter((path) => !shown.has(path))
    assert.deepStrictEqual(missing, [], remedy)
  })

  it("are at most eight small files, each shown with an alternative text", () => {
    const pictures = screens.filter(({ height }) => height !== undefined)
    const names = pictures.map(({ name }) => `${name}.png`)
    assert.isAtMost(names.length, 8)
    assert.sameMembers(readdirSync(new URL("pictures/", docs)), names, remedy)
    for (const name of names) {
      const bytes = readFileSync(new URL(`pictures/${name}`, docs))
      assert.strictEqual(bytes.toString("latin1", 1, 4), "PNG", name)
      assert.isBelow(bytes.length, bytesMax, name)
      assert.match(page, new RegExp(`!\\[[^\\]]+\\]\\(pictures/${name}\\)`, "u"))
    }
  })

  it("show the current console and data", () => {
    assert.strictEqual(readFileSync(madeOf, "utf8").trim(), pictureSource(), "run npm run pictures")
  })
})
