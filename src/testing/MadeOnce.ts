/* oxlint-disable no-await-in-loop -- each turn checks what another process has done in the meantime */
import { existsSync, mkdirSync, renameSync, rmSync, statSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { setTimeout as pause } from "node:timers/promises"
import { errorCode } from "../domain/ErrorCode.ts"

/** Folders that tests create once. Later runs of this user on this machine reuse them. */
export const templatesFolder = join(
  tmpdir(),
  `gateway-test-templates-${process.getuid?.() ?? "all"}`
)

/** A lock older than this belongs to a dead process. */
const abandonedMillis = 120_000

const made = new Map<string, Promise<string>>()

/**
 * The folder with this name, created by the first process that requests it. `make` fills an empty folder, which gets
 * its name once it is complete. Other processes wait for it.
 */
export const madeOnce = (
  name: string,
  make: (folder: string) => Promise<void>
): Promise<string> => {
  const known = made.get(name) ?? makeOrWait(name, make)
  made.set(name, known)
  return known
}

const makeOrWait = async (name: string, make: (folder: string) => Promise<void>) => {
  const folder = join(templatesFolder, name)
  const unfinished = `${folder}.new`
  mkdirSync(templatesFolder, { recursive: true })
  while (!existsSync(folder)) {
    if (!isFirst(unfinished)) {
      await pause(50)
      continue
    }
    try {
      if (existsSync(folder)) break
      await make(unfinished)
      renameSync(unfinished, folder)
    } finally {
      rmSync(unfinished, { recursive: true, force: true })
    }
  }
  return folder
}

const isFirst = (unfinished: string): boolean => {
  try {
    mkdirSync(unfinished)
    return true
  } catch (cause) {
    // No other process is creating it, so this is a real failure
    if (errorCode(cause) !== "EEXIST") throw cause
    const { mtimeMs } = statSync(unfinished, { throwIfNoEntry: false }) ?? { mtimeMs: Date.now() }
    if (Date.now() - mtimeMs > abandonedMillis) rmSync(unfinished, { recursive: true, force: true })
    return false
  }
}
