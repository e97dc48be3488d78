import { spawnSync } from "node:child_process"
import { chmodSync, cpSync, globSync, rmSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"

const root = fileURLToPath(new URL("../../../", import.meta.url))
const dist = join(root, "dist")

/** What the program reads beside its code, in `src` as in `dist`. The schema stays where it is. */
const assets = ["http/console/dist"]

const bins = ["cli/gateway.js", "cli/npx.js"]

/** `npm run build`: JavaScript, types and source maps of `src` in `dist`, as the package has them. ADR 0215 */
rmSync(dist, { recursive: true, force: true })
const { status } = spawnSync("tsc", ["-p", "tsconfig.build.json"], { cwd: root, stdio: "inherit" })
if (status !== 0) process.exit(status ?? 1)
// Nobody imports the command line
for (const path of globSync("cli/**/*.d.ts", { cwd: dist })) rmSync(join(dist, path))
for (const asset of assets) {
  cpSync(join(root, "src", asset), join(dist, asset), { recursive: true })
}
for (const bin of bins) chmodSync(join(dist, bin), 0o755)
