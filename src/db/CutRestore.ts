import { existsSync, readFileSync } from "node:fs"
import { rm, writeFile } from "node:fs/promises"
import { join } from "node:path"
import { syncPath } from "./NewStore.ts"

/** There while a restore moves its files into place: the folders that it fills, one a line. ADR 0221 */
const markOf = (dataDir: string): string => join(dataDir, ".restore-moves")

/** On the disk before the first move. */
export const markRestore = async (dataDir: string, folders: ReadonlyArray<string>) => {
  await writeFile(markOf(dataDir), `${folders.join("\n")}\n`, { flush: true, mode: 0o600 })
  await syncPath(dataDir)
}

export const unmarkRestore = (dataDir: string) => rm(markOf(dataDir), { force: true })

/** What to say of a restore that was cut off before it had moved the store, which comes last. */
export const cutRestore = (dataDir: string) => {
  if (!existsSync(markOf(dataDir)) || existsSync(join(dataDir, "postgres"))) return undefined
  const folders = readFileSync(markOf(dataDir), "utf8").trim().split("\n").join(" and ")
  return {
    fault: `a restore was cut off: there is a part of a backup in ${folders}`,
    remedy: `Empty ${folders}, with hidden files, and run gateway restore again`
  }
}
