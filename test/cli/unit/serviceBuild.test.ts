import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  utimesSync,
  writeFileSync
} from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "vitest"
import { ensureService } from "../../../src/cli/service/buildService.ts"
import { temporaryFolder } from "../../support/temporaryFolder.ts"

const bundleOf = (folder: string): string =>
  /^import "\.\/(\w+)\/main\.mjs"\n$/u.exec(readFileSync(join(folder, "main.mjs"), "utf8"))?.[1] ??
  assert.fail("no program")

describe("the bundle of the service", () => {
  it("is built if it is missing or its sources have changed, even by processes at the same time", async () => {
    const folder = join(temporaryFolder("service"), "build")
    assert.deepStrictEqual(await Promise.all([ensureService(folder), ensureService(folder)]), [
      true,
      true
    ])
    const name = bundleOf(folder)
    assert.isTrue(existsSync(join(folder, name, "main.mjs")))
    assert.sameMembers(readdirSync(folder), [name, "main.mjs"])
    assert.isFalse(await ensureService(folder))
    rmSync(join(folder, name), { recursive: true })
    assert.isTrue(await ensureService(folder))
    assert.sameMembers(readdirSync(folder), [name, "main.mjs"])
  })

  it("leaves only the previous bundle, of which a running service may still load parts", async () => {
    const folder = join(temporaryFolder("service"), "build")
    for (const name of ["first", "last", "compiled", "new-abandoned", "new-building"]) {
      mkdirSync(join(folder, name), { recursive: true })
    }
    utimesSync(join(folder, "new-abandoned"), 0, 0)
    writeFileSync(join(folder, "main.mjs"), 'import "./last/main.mjs"\n')
    assert.isTrue(await ensureService(folder))
    assert.sameMembers(readdirSync(folder), ["last", bundleOf(folder), "main.mjs", "new-building"])
  })
})
