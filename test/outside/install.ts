import { spawnSync } from "node:child_process"
import { createHash } from "node:crypto"
import { existsSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"

const folder = import.meta.dirname
const lock = readFileSync(join(folder, "package-lock.json"))
const digest = createHash("sha256").update(lock).digest("hex")
/** Names the lock file that the folder beside it was installed from. */
const mark = join(folder, "node_modules", ".installed-lock")

if (!existsSync(mark) || readFileSync(mark, "utf8") !== digest) {
  // No package here needs its install script
  const words = ["ci", "--ignore-scripts", "--no-audit", "--no-fund"]
  const { status } = spawnSync("npm", words, { cwd: folder, stdio: "inherit" })
  if (status !== 0) process.exit(status ?? 1)
  writeFileSync(mark, digest)
}
