import { assert, describe, it } from "@effect/vitest"
import { randomUUID } from "node:crypto"
import { existsSync, mkdirSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { madeOnce, templatesFolder } from "../../../src/testing/MadeOnce.ts"

describe("a folder that is made once", () => {
  it("is made by the first caller", async () => {
    const name = `test-${randomUUID()}`
    let made = 0
    const make = async (folder: string) => {
      made += 1
      writeFileSync(join(folder, "file"), "complete")
    }
    const [folder] = await Promise.all([madeOnce(name, make), madeOnce(name, make)])
    assert.strictEqual(made, 1)
    assert.isTrue(existsSync(join(folder, "file")))
    rmSync(folder, { recursive: true })
  })

  it("fails at once if it cannot be made", async () => {
    mkdirSync(templatesFolder, { recursive: true })
    const name = `test-${randomUUID()}`
    const file = join(templatesFolder, name)
    writeFileSync(file, "no folder")
    const fault = await madeOnce(join(name, "inside"), async () => {}).catch(String)
    rmSync(file)
    assert.include(fault, "ENOTDIR")
  })
})
