import { execFileSync, spawnSync } from "node:child_process"
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { assert, describe, it } from "vitest"
import { temporaryFolder } from "../../support/temporaryFolder.ts"

const root = fileURLToPath(new URL("../../../", import.meta.url))
const script = join(root, "src/cli/package/release.ts")
const folder = temporaryFolder("release")

const git = (...words: ReadonlyArray<string>) =>
  execFileSync("git", ["-c", "user.name=t", "-c", "user.email=t@example.com", ...words], {
    cwd: folder,
    encoding: "utf8"
  }).trim()

const dryRun = () => {
  const { status, stderr, stdout } = spawnSync(process.execPath, [script, "--dry-run"], {
    cwd: folder,
    encoding: "utf8"
  })
  return { status, text: stdout + stderr }
}

const manifest = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as {
  readonly version: string
  readonly dependencies: object
  readonly peerDependencies: object
  readonly peerDependenciesMeta: object
}

describe("npm run release -- --dry-run", () => {
  it("lists what is missing or what would be published, and publishes nothing", () => {
    mkdirSync(join(folder, "schema"))
    mkdirSync(join(folder, ".ci"))
    copyFileSync(join(root, "package.json"), join(folder, "package.json"))
    copyFileSync(join(root, "schema/openapi.json"), join(folder, "schema/openapi.json"))
    writeFileSync(join(folder, ".gitignore"), ".ci/passed\n")
    writeFileSync(join(folder, "CHANGELOG.md"), `## ${manifest.version} (not released)\n`)
    git("init", "--quiet")
    git("commit", "--quiet", "--allow-empty", "-m", "first")
    const before = dryRun()
    assert.strictEqual(before.status, 1)
    for (const what of [
      "the tree is clean",
      "CHANGELOG.md has",
      "all tests have passed",
      "a license is chosen",
      "the repository is named"
    ]) {
      assert.include(before.text, `missing  ${what}`)
    }
    assert.include(before.text, "ok       the OpenAPI document has the version")

    writeFileSync(join(folder, "CHANGELOG.md"), `## ${manifest.version} (2026-11-23)\n`)
    const chosen = { ...manifest, license: "MIT", repository: "https://example.com/gateway.git" }
    writeFileSync(join(folder, "package.json"), JSON.stringify(chosen))
    git("add", ".")
    git("commit", "--quiet", "-m", "release")
    writeFileSync(join(folder, ".ci/passed"), git("rev-parse", "HEAD^{tree}"))
    const { status, text } = dryRun()
    assert.strictEqual(status, 0, text)
    assert.notInclude(text, "missing")
    assert.include(text, `would publish generation-gateway@${manifest.version}`)
    for (const name of ["generation-gateway-client", "generation-gateway-webhooks"]) {
      assert.include(text, `would publish ${name}@${manifest.version}`)
    }
    assert.include(text, `would tag v${manifest.version}`)
    assert.strictEqual(git("tag"), "")
    git("tag", `v${manifest.version}`)
    assert.include(dryRun().text, "missing  v")
  }, 180_000)
})

describe("package-lock.json", () => {
  it("has what the service imports as dependencies, and Node only for development", () => {
    const { packages } = JSON.parse(readFileSync(join(root, "package-lock.json"), "utf8")) as {
      readonly packages: Readonly<Record<string, { readonly dev?: boolean }>>
    }
    // An optional peer is for a consumer's own program
    const peers = Object.keys(manifest.peerDependencies).filter(
      (name) => !(name in manifest.peerDependenciesMeta)
    )
    const names = [...Object.keys(manifest.dependencies), ...peers]
    for (const name of names) assert.notProperty(packages[`node_modules/${name}`], "dev", name)
    assert.isTrue(packages["node_modules/node"]?.dev)
  })
})
