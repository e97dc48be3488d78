import { existsSync, mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"

/** An in-memory file system if there is one, so that other disk activity does not delay an fsync. */
export const inMemory = existsSync("/dev/shm") ? "/dev/shm" : tmpdir()

const made = new Set<string>()

/** Creates a folder that is removed after the file's tests, even if they fail (`seed.ts`). */
export const temporaryFolder = (name: string, parent = tmpdir()): string => {
  const folder = mkdtempSync(join(parent, `gateway-${name}-`))
  made.add(folder)
  return folder
}

/** Retries, because a process that is still ending may write into its folder. */
const retries = { maxRetries: 20, retryDelay: 100 }

export const removeTemporaryFolders = (): void => {
  for (const folder of made) rmSync(folder, { recursive: true, force: true, ...retries })
  made.clear()
}

// Outside of a test file there are no hooks
process.once("exit", removeTemporaryFolders)
