import { createHash } from "node:crypto"
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { errorCode } from "../domain/ErrorCode.ts"

/** What the builds of the console and of the service share. Both run before `npm start`. */

export const root = fileURLToPath(new URL("../../", import.meta.url))

/** The hash of everything that a build depends on: files of the project, and other values. */
export const hashOf = (files: ReadonlyArray<string>, others: ReadonlyArray<string>): string => {
  const hash = createHash("sha256")
  for (const name of files) hash.update(`${name}\0`).update(readFileSync(join(root, name)))
  for (const other of others) hash.update(`${other}\0`)
  return hash.digest("hex")
}

/** Runs a build as a program, and `withoutBundler` if the development dependencies are missing. */
export const runBuild = async (
  what: string,
  ensure: () => Promise<boolean>,
  withoutBundler: () => void
): Promise<void> => {
  const started = performance.now()
  try {
    if (!(await ensure())) return
    const seconds = ((performance.now() - started) / 1000).toFixed(1)
    process.stderr.write(`Built the ${what} in ${seconds} s\n`)
  } catch (cause) {
    if (errorCode(cause) !== "ERR_MODULE_NOT_FOUND") throw cause
    withoutBundler()
  }
}
