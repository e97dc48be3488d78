import type { Plugin } from "esbuild"
import { createHash, randomUUID } from "node:crypto"
import {
  existsSync,
  globSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync
} from "node:fs"
import { readFile } from "node:fs/promises"
import { join } from "node:path"
import { fileURLToPath, pathToFileURL } from "node:url"

/** The service as a few files, which load faster and need less memory than 900 modules. ADR 0233 */

const root = fileURLToPath(new URL("../../../", import.meta.url))

/** The folder with the bundles and the program that runs the newest one. */
export const buildFolder = join(root, "build")

const program = "main.mjs"

/** Bundles a program into `main.mjs` of this folder; `from` is the project, or a copy of it. */
export const bundle = async (main: string, folder: string, from = root): Promise<void> => {
  const { build } = await import("esbuild")
  await build({
    absWorkingDir: from,
    entryPoints: { main },
    outdir: folder,
    outExtension: { ".js": ".mjs" },
    bundle: true,
    splitting: true,
    format: "esm",
    platform: "node",
    target: "node24",
    legalComments: "none",
    logLevel: "error",
    plugins: [ownUrls, outside]
  })
}

/** Lets a bundled module find its files relative to its original location. */
const ownUrls: Plugin = {
  name: "own-urls",
  setup: ({ onLoad }) => {
    onLoad({ filter: /\.ts$/ }, async ({ path }) => ({
      loader: "ts",
      contents: (await readFile(path, "utf8")).replaceAll(
        "import.meta.url",
        JSON.stringify(pathToFileURL(path).href)
      )
    }))
  }
}

/** Packages in CommonJS, with native code or with WebAssembly are loaded from their original location. */
const outside: Plugin = {
  name: "outside",
  setup: ({ onResolve, resolve }) => {
    onResolve({ filter: /^[^./]/ }, async ({ path, pluginData, ...importer }) => {
      if (pluginData === "resolving" || isBundled(path)) return undefined
      if (path.startsWith("node:")) return { path, external: true }
      const found = await resolve(path, { ...importer, pluginData: "resolving" })
      return { path: found.path, external: true, errors: found.errors }
    })
  }
}

const isBundled = (path: string) => /^(effect|@effect\/[^/]+|fast-png|ipaddr\.js)(\/|$)/u.test(path)

/** The hash of everything that a bundle depends on, including its location. */
const hashOfInputs = (): string => {
  const hash = createHash("sha256").update(`${root}\0`)
  const isOfService = (name: string) => !name.startsWith(join("src", "console"))
  const sources = globSync("src/**/*.ts", { cwd: root }).filter(isOfService).sort()
  for (const name of [...sources, "package-lock.json"]) {
    hash.update(`${name}\0`).update(readFileSync(join(root, name)))
  }
  return hash.digest("hex").slice(0, 16)
}

const runOf = (folder: string): string | undefined => {
  const path = join(folder, program)
  return existsSync(path) ? readFileSync(path, "utf8") : undefined
}

/** Replaces the program in one step, because another process may be starting it. */
const writeRun = (folder: string, run: string): void => {
  const written = join(folder, `${program}.${process.pid}`)
  writeFileSync(written, run)
  renameSync(written, join(folder, program))
}

/** A folder that is written to has changed within this time. */
const abandonedMillis = 60_000

/** Removes what neither this run nor the one before needs, with Node's compile cache, but not what others are building. */
const removeOthers = (folder: string, runs: ReadonlyArray<string | undefined>): void => {
  for (const name of readdirSync(folder)) {
    const isNeeded = name === program || runs.some((run) => run?.includes(name))
    const path = join(folder, name)
    const { mtimeMs } = statSync(path, { throwIfNoEntry: false }) ?? { mtimeMs: 0 }
    const isBeingBuilt = name.startsWith("new-") && Date.now() - mtimeMs < abandonedMillis
    if (!isNeeded && !isBeingBuilt) rmSync(path, { recursive: true, force: true })
  }
}

/**
 * Bundles the service, unless that was already done from the same sources. A bundle stays until the one after the next,
 * because a running service may load a part of it later. `false`: it was already built. ADR 0233
 */
export const ensureService = async (folder = buildFolder): Promise<boolean> => {
  const name = hashOfInputs()
  const run = `import "./${name}/${program}"\n`
  const before = runOf(folder)
  if (before === run) return false
  // Unlike a folder of `mkdtemp`, another user, who runs the service, can read it
  const made = join(folder, `new-${randomUUID()}`)
  mkdirSync(made, { recursive: true })
  await bundle("src/main.ts", made)
  try {
    renameSync(made, join(folder, name))
  } catch (cause) {
    // Another process was faster
    if (!existsSync(join(folder, name))) throw cause
    rmSync(made, { recursive: true })
  }
  writeRun(folder, run)
  removeOthers(folder, [before, run])
  return true
}

/** Runs before `npm start`. Without the development dependencies `npm start` runs the source. */
const main = async (): Promise<void> => {
  const started = performance.now()
  try {
    if (!(await ensureService())) return
    const seconds = ((performance.now() - started) / 1000).toFixed(1)
    process.stderr.write(`Built the service in ${seconds} s\n`)
  } catch (cause) {
    const isMissing =
      cause instanceof Error && "code" in cause && cause.code === "ERR_MODULE_NOT_FOUND"
    if (!isMissing) throw cause
    mkdirSync(buildFolder, { recursive: true })
    writeRun(buildFolder, 'import "../src/main.ts"\n')
  }
}

if (import.meta.main) await main()
