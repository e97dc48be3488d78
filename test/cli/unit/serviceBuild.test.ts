import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  utimesSync,
  writeFileSync
} from "node:fs"
import { join } from "node:path"
import { assert, beforeAll, describe, it } from "vitest"
import { ensureService } from "../../../src/cli/service/buildService.ts"
import { temporaryFolder } from "../../support/temporaryFolder.ts"

const bundleOf = (folder: string): string =>
  /^import "\.\/(\w+)\/main\.mjs"\n$/u.exec(readFileSync(join(folder, "main.mjs"), "utf8"))?.[1] ??
  assert.fail("no program")

describe("the bundle of the service", () => {
  let built: string
  let name: string
  let areBuilt: ReadonlyArray<boolean>
  beforeAll(async () => {
    built = join(temporaryFolder("service"), "build")
    areBuilt = await Promise.all([ensureService(built), ensureService(built)])
    name = bundleOf(built)
  })

  const copyOfBuilt = () => {
    const folder = join(temporaryFolder("service"), "build")
    cpSync(built, folder, { recursive: true })
    return folder
  }

  it("is built if it is missing, even by processes at the same time", async () => {
    assert.deepStrictEqual(areBuilt, [true, true])
    const folder = copyOfBuilt()
    assert.isTrue(existsSync(join(folder, name, "main.mjs")))
    assert.sameMembers(readdirSync(folder), [name, "main.mjs"])
    assert.isFalse(await ensureService(folder))
    rmSync(join(folder, name), { recursive: true })
    assert.isTrue(await ensureService(folder))
    assert.sameMembers(readdirSync(folder), [name, "main.mjs"])
  })

  it("replaces one of other sources, which stays, because a running service may still load parts", async () => {
    const folder = copyOfBuilt()
    for (const other of ["first", "last", "compiled", "new-abandoned", "new-building"]) {
      mkdirSync(join(folder, other), { recursive: true })
    }
    utimesSync(join(folder, "new-abandoned"), 0, 0)
    writeFileSync(join(folder, "last", "main.mjs"), "")
    writeFileSync(join(folder, "main.mjs"), 'import "./last/main.mjs"\n')
    assert.isTrue(await ensureService(folder))
    assert.strictEqual(bundleOf(folder), name)
    assert.sameMembers(readdirSync(folder), ["last", name, "main.mjs", "new-building"])
  })
})
