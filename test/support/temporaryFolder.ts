import { existsSync, mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"

/** A file system in memory, if there is one, where no other work on the disk delays an fsync. */
export const inMemory = existsSync("/dev/shm") ? "/dev/shm" : tmpdir()

const made = new Set<string>()

/** A new folder, which is removed after the tests of the file, even if they fail (`seed.ts`). */
export const temporaryFolder = (name: string, parent = tmpdir()): string => {
  const folder = mkdtempSync(join(parent, `gateway-${name}-`))
  made.add(folder)
  return folder
}

/** A process that is still ending may write into its folder. */
const retries = { maxRetries: 20, retryDelay: 100 }

export const removeTemporaryFolders = (): void => {
  for (const folder of made) rmSync(folder, { recursive: true, force: true, ...retries })
  made.clear()
}

// A file without a running test has no hooks
process.once("exit", removeTemporaryFolders)
