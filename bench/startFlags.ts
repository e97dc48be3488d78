import { spawnSync } from "node:child_process"
import { readFileSync } from "node:fs"

/** The flags of `npm start`. */
export const startFlags = (
  JSON.parse(readFileSync(new URL("../package.json", import.meta.url), "utf8")) as {
    readonly scripts: { readonly start: string }
  }
).scripts.start
  .split(" ")
  .filter((word) => word.startsWith("--"))

/** Starts this program again with these flags, so that what it measures runs as the service does. */
export const withStartFlags = (): void => {
  if (startFlags.every((flag) => process.execArgv.includes(flag))) return
  const { status } = spawnSync(
    process.execPath,
    [...startFlags, ...process.execArgv, ...process.argv.slice(1)],
    { stdio: "inherit" }
  )
  process.exit(status ?? 1)
}
