import { execFile } from "node:child_process"
import { createHash } from "node:crypto"
import { mkdirSync, readdirSync, statSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { promisify } from "node:util"
import { madeOnce, templatesFolder } from "./madeOnce.ts"

const root = fileURLToPath(new URL("../../", import.meta.url))

/**
 * Node keeps its compiled modules here: loading the service is half the work of a start without it.
 * A process that is killed writes nothing.
 */
export const compileCache = {
  NODE_COMPILE_CACHE: join(templatesFolder, `compiled-${process.version}`)
}

/**
 * Flags of short-lived processes. V8 compiles hot WebAssembly (the embedded store) a second time, in
 * the background: a third of the processor time of a start, of which these processes never profit.
 */
export const shortLived = ["--liftoff-only"]

/** Loads the service once after each change of it, so that killed processes find it compiled. */
export const compiled = () => {
  const hash = createHash("sha256")
  for (const file of readdirSync(join(root, "src"), { encoding: "utf8", recursive: true }).sort()) {
    const { mtimeMs, size } = statSync(join(root, "src", file))
    hash.update(`${file} ${mtimeMs} ${size}\n`)
  }
  return madeOnce(`loaded-${hash.digest("hex").slice(0, 16)}`, async () => {
    mkdirSync(compileCache.NODE_COMPILE_CACHE, { recursive: true })
    // A wrong value ends the process when it is loaded
    const env = { PATH: process.env.PATH, PORT: "none", ...compileCache }
    await promisify(execFile)(process.execPath, ["src/main.ts"], { cwd: root, env }).catch(() => {})
  })
}
