import { spawn } from "node:child_process"
import { createHash } from "node:crypto"
import { once } from "node:events"
import { mkdirSync, readdirSync, statSync } from "node:fs"
import { rm } from "node:fs/promises"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { bundle } from "../../src/cli/service/buildService.ts"
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

/** Bundles a program of this project like the service, once after each change, and returns its path. */
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
