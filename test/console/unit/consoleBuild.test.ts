import { readdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { brotliDecompressSync, gunzipSync } from "node:zlib"
import { assert, describe, it } from "vitest"
import { buildConsole, distFolder, ensureConsole } from "../../../src/cli/console/buildConsole.ts"
import { projectFolder } from "../../support/spawnService.ts"
import { temporaryFolder } from "../../support/temporaryFolder.ts"

const remedy = "run npm run console"
const pageBytes = 80_000

describe("the built console", async () => {
  const built = await buildConsole()
  const committed = (name: string) => readFileSync(join(distFolder, name))

  it("equals a build of the sources, byte for byte", () => {
    assert.sameMembers(readdirSync(distFolder), [...built.files.keys(), "inputs.sha256"], remedy)
    for (const [name, contents] of built.files) {
      // Another processor may compress differently
      if (/\.(?:br|gz)$/u.test(name)) continue
      assert.isTrue(committed(name).equals(contents), `${name}: ${remedy}`)
    }
  })

  it("is built if it is missing or its sources have changed, even by processes at the same time", async () => {
    const folder = join(temporaryFolder("console"), "dist")
    const isWhole = () =>
      assert.sameMembers(readdirSync(folder), [...built.files.keys(), "inputs.sha256"])
    assert.deepStrictEqual(await Promise.all([ensureConsole(folder), ensureConsole(folder)]), [
      true,
      true
    ])
    isWhole()
    assert.isFalse(await ensureConsole(folder))
    writeFileSync(join(folder, "inputs.sha256"), "others")
    writeFileSync(join(folder, "chunk-OLD.js"), "")
    assert.isTrue(await ensureConsole(folder))
    isWhole()
    assert.deepStrictEqual(readdirSync(join(folder, "..")), ["dist"])
  })

  it("is built before `npm start` and `deno task start`", () => {
    const read = (name: string) => JSON.parse(readFileSync(join(projectFolder, name), "utf8"))
    assert.include(read("package.json").scripts.prestart, "src/cli/console/buildConsole.ts")
    const { console, start } = read("deno.json").tasks
    assert.include(console, "src/cli/console/buildConsole.ts")
    assert.deepStrictEqual(start.dependencies, ["console"])
  })

  it("has each file compressed, with the same content", () => {
    for (const name of built.files.keys()) {
      const original = name.replace(/\.(?:br|gz)$/u, "")
      if (original === name) continue
      const unpack = name.endsWith(".br") ? brotliDecompressSync : gunzipSync
      assert.isTrue(unpack(committed(name)).equals(committed(original)), name)
    }
  })

  it("loads at most 80 kB for any page, gzipped, including the font", () => {
    const sizeOf = (name: string) =>
      committed(built.files.has(`${name}.gz`) ? `${name}.gz` : name).length
    assert.isAbove(built.pages.size, 15)
    for (const [page, names] of built.pages) {
      const bytes = names.reduce((sum, name) => sum + sizeOf(name), 0)
      assert.isAtMost(bytes, pageBytes, page)
      assert.isAtLeast(bytes, 40_000, "the files were counted")
    }
  })

  it("references no other host", () => {
    for (const name of readdirSync(distFolder).filter((it) => /\.(?:css|html|js)$/u.test(it))) {
      const hosts = [
        ...committed(name)
          .toString()
          .matchAll(/https?:\/\/[\w.-]+/gu)
      ]
      // XML namespaces are names, not addresses
      const foreign = hosts.map(([it]) => it).filter((it) => it !== "http://www.w3.org")
      assert.deepStrictEqual(foreign, [], name)
    }
  })
})
