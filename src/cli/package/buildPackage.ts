import { spawnSync } from "node:child_process"
import { chmodSync, cpSync, globSync, readFileSync, rmSync } from "node:fs"
import { dirname, join } from "node:path"
import { root } from "../builds.ts"
import { ensureConsole } from "../console/buildConsole.ts"
import { buildSmallPackages } from "./smallPackages.ts"

const dist = join(root, "dist")

/**
 * Files that the program reads besides its code, under the same paths in `src` and `dist`. The schema is not copied.
 */
const assets = ["http/console/dist"]

const bins = ["cli/gateway.js", "cli/npx.js"]

/** `npm run build`: writes the JavaScript, types and source maps of `src` to `dist`, as they are packaged. ADR 0215 */
await ensureConsole()
rmSync(dist, { recursive: true, force: true })
const { status } = spawnSync("tsc", ["-p", "tsconfig.build.json"], { cwd: root, stdio: "inherit" })
if (status !== 0) process.exit(status ?? 1)
removeUnreachedTypes()
for (const asset of assets) {
  cpSync(join(root, "src", asset), join(dist, asset), { recursive: true })
}
for (const bin of bins) chmodSync(join(dist, bin), 0o755)
buildSmallPackages()

/** Removes declarations that cannot be imported because the package's entry points do not reach them. */
function removeUnreachedTypes(): void {
  const reached = new Set<string>()
  const visit = (path: string): void => {
    if (reached.has(path)) return
    reached.add(path)
    const imports = readFileSync(path, "utf8").matchAll(/(?:from|import\() ?"(\.[^"]+)\.[jt]s"/gu)
    for (const [, to = ""] of imports) visit(join(dirname(path), `${to}.d.ts`))
  }
  const manifest = readFileSync(join(root, "package.json"), "utf8")
  for (const [, entry = ""] of manifest.matchAll(/"types": "([^"]+)"/gu)) visit(join(root, entry))
  for (const path of globSync("**/*.d.ts", { cwd: dist })) {
    if (!reached.has(join(dist, path))) rmSync(join(dist, path))
  }
}
