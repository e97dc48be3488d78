import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"

const made = new Set<string>()

/** A new folder, which is removed after the tests of the file, also when they fail (`seed.ts`). */
export const temporaryFolder = (name: string): string => {
  const folder = mkdtempSync(join(tmpdir(), `gateway-${name}-`))
  made.add(folder)
  return folder
}

/** A process that still ends may write into its folder. */
const retries = { maxRetries: 20, retryDelay: 100 }

export const removeTemporaryFolders = (): void => {
  for (const folder of made) rmSync(folder, { recursive: true, force: true, ...retries })
  made.clear()
}

// A file of which no test runs has no hooks
process.once("exit", removeTemporaryFolders)
