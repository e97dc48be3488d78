import type { Plugin } from "esbuild"
import { randomUUID } from "node:crypto"
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
import { pathToFileURL } from "node:url"
import { hashOf, root, runBuild } from "../builds.ts"

/** The service as a few files, which load faster and need less memory than 900 modules. ADR 0233 */

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

const hashOfInputs = (): string => {
  const isOfService = (name: string) => !name.startsWith(join("src", "console"))
  const sources = globSync("src/**/*.ts", { cwd: root }).filter(isOfService).sort()
  // A bundle names the files outside it by their absolute paths
  return hashOf([...sources, "package-lock.json"], [root]).slice(0, 16)
}

const runOf = (folder: string): string | undefined => {
  const path = join(folder, program)
  return existsSync(path) ? readFileSync(path, "utf8") : undefined
}

/** A name that no other process uses or removes. */
const newName = () => `new-${randomUUID()}`

/** Replaces the program in one step, because another process may be starting it. */
const writeRun = (folder: string, run: string): void => {
  mkdirSync(folder, { recursive: true })
  const written = join(folder, newName())
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
  if (before === run && existsSync(join(folder, name, program))) return false
  // Unlike a folder of `mkdtemp`, another user, who runs the service, can read it
  const made = join(folder, newName())
  mkdirSync(made, { recursive: true })
  try {
    await bundle("src/main.ts", made)
    renameSync(made, join(folder, name))
  } catch (cause) {
    rmSync(made, { recursive: true })
    // Another process may have been faster
    if (!existsSync(join(folder, name, program))) throw cause
  }
  writeRun(folder, run)
  removeOthers(folder, [before, run])
  return true
}

/** Runs before `npm start`, which runs the source without the development dependencies. */
if (import.meta.main) {
  await runBuild("service", ensureService, () => writeRun(buildFolder, 'import "../src/main.ts"\n'))
}
