import { existsSync, readFileSync } from "node:fs"
import { rm, writeFile } from "node:fs/promises"
import { join } from "node:path"
import { syncPath } from "./NewStore.ts"

/**
 * A file that exists while a restore moves its files into place. It lists the folders that the restore fills, one per
 * line. ADR 0221
 */
const markOf = (dataDir: string): string => join(dataDir, ".restore-moves")

/** Writes the mark durably, before the first move. */
export const markRestore = async (dataDir: string, folders: ReadonlyArray<string>) => {
  await writeFile(markOf(dataDir), `${folders.join("\n")}\n`, { flush: true, mode: 0o600 })
  await syncPath(dataDir)
}

export const unmarkRestore = (dataDir: string) => rm(markOf(dataDir), { force: true })

/** The fault of a restore that was interrupted before it moved the store, which it moves last. */
export const cutRestore = (dataDir: string) => {
  if (!existsSync(markOf(dataDir)) || existsSync(join(dataDir, "postgres"))) return undefined
  const folders = readFileSync(markOf(dataDir), "utf8").trim().split("\n").join(" and ")
  return {
    fault: `a restore was interrupted: ${folders} contain part of a backup`,
    remedy: `Empty ${folders}, including hidden files, and run gateway restore again`
  }
}
