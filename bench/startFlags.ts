import { execFileSync, spawnSync } from "node:child_process"
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"

const wordsOf = (tree: string): ReadonlyArray<string> => {
  const { scripts } = JSON.parse(readFileSync(join(tree, "package.json"), "utf8")) as {
    readonly scripts: { readonly start: string }
  }
  return scripts.start.split(" ")
}

/** The flags of `npm start` in this folder. */
export const startFlagsOf = (tree: string): ReadonlyArray<string> =>
  wordsOf(tree).filter((word) => word.startsWith("--"))

const project = fileURLToPath(new URL("../", import.meta.url))

export const startFlags = [...startFlagsOf(project)]

/** The environment that `npm start` sets, whose only variable is a path. */
export const startEnvironment: Record<string, string> = Object.fromEntries(
  wordsOf(project)
    .filter((word) => /^[A-Z_]+=/u.test(word))
    .map((word) => word.split("=") as [string, string])
    .map(([name, path]) => [name, join(project, path)])
)

const built = new Set<string>()

/** The path of the program that `npm start` runs in this folder. Builds it at the first call. */
export const builtService = (tree = project): string => {
  if (!built.has(tree)) {
    execFileSync("npm", ["run", "--silent", "prestart"], { cwd: tree, stdio: "inherit" })
    built.add(tree)
  }
  return join(tree, wordsOf(tree).at(-1) ?? "")
}

/** Restarts this program with these flags, so that what it measures runs like the service. */
export const withStartFlags = (): void => {
  if (startFlags.every((flag) => process.execArgv.includes(flag))) return
  const { status } = spawnSync(
    process.execPath,
    [...startFlags, ...process.execArgv, ...process.argv.slice(1)],
    { stdio: "inherit" }
  )
  process.exit(status ?? 1)
}
