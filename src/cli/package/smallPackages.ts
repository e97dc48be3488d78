import { spawnSync } from "node:child_process"
import { cpSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"

const root = fileURLToPath(new URL("../../../", import.meta.url))

interface SmallPackage {
  readonly folder: string
  readonly name: string
  readonly description: string
  readonly entry: string
}

/** Packages without dependencies, built from the same sources as the subpaths of `generation-gateway`. */
export const smallPackages: ReadonlyArray<SmallPackage> = [
  {
    folder: "dist/packages/client",
    name: "generation-gateway-client",
    description: "A client of the Generation Gateway for Node, Deno, Bun, workers and browsers",
    entry: "index"
  },
  {
    folder: "dist/packages/webhooks",
    name: "generation-gateway-webhooks",
    description: "Verifies webhooks of the Generation Gateway with nothing but Web Crypto",
    entry: "verifyWebhook"
  }
]

/** Writes each package to its folder. The version, license and repository are those of the project. */
export const buildSmallPackages = (): void => {
  rmSync(join(root, "dist/packages"), { recursive: true, force: true })
  const { status } = spawnSync("tsc", ["-p", "tsconfig.packages.json"], {
    cwd: root,
    stdio: "inherit"
  })
  if (status !== 0) process.exit(status ?? 1)
  const { engines, license, repository, version } = JSON.parse(
    readFileSync(join(root, "package.json"), "utf8")
  )
  for (const { description, entry, folder, name } of smallPackages) {
    const manifest = {
      name,
      version,
      description,
      license,
      repository,
      type: "module",
      sideEffects: false,
      exports: { ".": { types: `./${entry}.d.ts`, default: `./${entry}.js` } },
      engines
    }
    writeFileSync(join(root, folder, "package.json"), `${JSON.stringify(manifest, null, 2)}\n`)
    const source = folder.replace("dist/packages", "src")
    cpSync(join(root, source, "README.md"), join(root, folder, "README.md"))
  }
}

/** Runs for `npm run build:packages`. */
if (import.meta.main) buildSmallPackages()
