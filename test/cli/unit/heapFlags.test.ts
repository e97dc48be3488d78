import { readFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { assert, describe, it } from "vitest"
import { heapFlags, missingFlags } from "../../../src/cli/HeapFlags.ts"

/** ADR 0233; that a started service has them: commandProcesses.test.ts */

const read = (path: string) =>
  readFileSync(fileURLToPath(new URL(`../../../${path}`, import.meta.url)), "utf8")

describe("the flags of a service", () => {
  it("are the flags of `npm start` and of the image", () => {
    const { start } = JSON.parse(read("package.json")).scripts
    const run = `node ${heapFlags.join(" ")} build/main.mjs`
    assert.strictEqual(start, `NODE_COMPILE_CACHE=build/compiled ${run}`)
    // The start that fills the image's compile cache, which depends on the flags
    assert.include(read("Dockerfile"), `/node/bin/${run} &`)
    const command = JSON.stringify([...heapFlags, "build/main.mjs"]).replaceAll(",", ", ")
    assert.include(read("Dockerfile"), `CMD ${command}`)
  })

  it("are added unless the user has set them, with hyphens or underscores, on or off", () => {
    assert.deepStrictEqual(missingFlags([], ""), heapFlags)
    assert.deepStrictEqual(missingFlags(heapFlags, ""), [])
    assert.deepStrictEqual(missingFlags(["--max_semi_space_size=64"], "--inspect"), [
      "--heap-growing-percent=100",
      "--no-allocation-site-pretenuring",
      "--v8-pool-size=1"
    ])
    assert.deepStrictEqual(missingFlags(["--allocation-site-pretenuring"], ""), [
      "--max-semi-space-size=16",
      "--heap-growing-percent=100",
      "--v8-pool-size=1"
    ])
    assert.notInclude(missingFlags([], "--max-semi-space-size=8"), "--max-semi-space-size=16")
  })
})
