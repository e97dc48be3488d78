import { build } from "esbuild"
import type { Plugin } from "esbuild"
import { spawn } from "node:child_process"
import { createHash } from "node:crypto"
import { once } from "node:events"
import { mkdirSync, readdirSync, statSync } from "node:fs"
import { readFile, rm } from "node:fs/promises"
import { join } from "node:path"
import { fileURLToPath, pathToFileURL } from "node:url"
import { madeOnce, templatesFolder } from "../../src/testing/MadeOnce.ts"

const root = fileURLToPath(new URL("../../", import.meta.url))

/**
 * Node's compile cache. Without it, loading the service is half of a start. A process that is killed writes nothing to
 * it.
 */
export const compileCache = {
  NODE_COMPILE_CACHE: join(templatesFolder, `compiled-${process.version}`)
}

/**
 * Flags for short-lived processes. V8 compiles hot WebAssembly (the embedded store) a second time in the background.
 * That takes a third of a start's CPU time, from which these processes never benefit. Exiting during a background
 * compilation of JavaScript may also deadlock: https://github.com/nodejs/node/issues/54918
 */
export const shortLived = ["--liftoff-only", "--no-maglev", "--no-concurrent-sparkplug"]

/**
 * Bundles a program of this project with its packages into one file, once after each change, and returns its path.
 * Finding and linking 900 modules takes a third of a start. Packages that load their own files are not bundled.
 */
export const compiled = async (main = "src/main.ts"): Promise<string> => {
  const hash = createHash("sha256").update(root)
  const filesIn = (folder: string) =>
    readdirSync(join(root, folder), { encoding: "utf8", recursive: true })
      .sort()
      .map((it) => join(folder, it))
  for (const file of [...filesIn("src"), ...filesIn("test/support"), main, "package-lock.json"]) {
    const { mtimeMs, size } = statSync(join(root, file))
    hash.update(`${file} ${mtimeMs} ${size}\n`)
  }
  const name = `program-${hash.digest("hex").slice(0, 16)}`
  const program = join(await madeOnce(name, (folder) => bundle(main, folder)), "main.mjs")
  await madeOnce(`${name}-loaded`, (folder) => load(program, folder))
  return program
}

/**
 * Fills the compile cache. Only a process that exits normally writes the cache, and only the first write counts.
 * Therefore this one starts the whole service, with the same flags as later processes, because V8 compares them. A
 * program that does not listen exits when its work is done.
 */
const load = async (program: string, folder: string) => {
  mkdirSync(compileCache.NODE_COMPILE_CACHE, { recursive: true })
  const { freePort } = await import("./spawnService.ts")
  const { prepareDataDir } = await import("./stores.ts")
  await prepareDataDir(folder)
  // A program without a port takes its folder from these arguments
  const words = [program, folder, "volatile", "100"]
  const child = spawn(process.execPath, [...shortLived, ...words], {
    stdio: ["ignore", "pipe", "ignore"],
    timeout: 30_000,
    env: {
      PATH: process.env.PATH,
      ...compileCache,
      DATA_DIR: folder,
      HOST: "127.0.0.1",
      PORT: String(await freePort()),
      EMBEDDED_DURABLE: "false",
      SHUTDOWN_DELAY: "0 seconds",
      LOG_FORMAT: "json"
    }
  })
  child.stdout.on("data", (text: Buffer) => {
    if (text.includes("Listening")) child.kill("SIGTERM")
  })
  await once(child, "exit")
  await rm(join(folder, "postgres"), { recursive: true, force: true })
}

/** Bundles a program into `main.mjs` of this folder; `from` is the project, or a copy of it. */
export const bundle = async (main: string, folder: string, from = root) => {
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
