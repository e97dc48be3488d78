import { mkdirSync, statSync } from "node:fs"
import { dirname } from "node:path"
import { errorCode } from "../domain/ErrorCode.ts"

/**
 * Creates the folder and its parents. Node's `recursive` never ends if the system reports that a folder does not exist
 * although its parent does, as in /proc.
 */
export const makeFolder = (folder: string, mode = 0o700): void => {
  if (statSync(folder, { throwIfNoEntry: false })?.isDirectory() === true) return
  if (dirname(folder) !== folder) makeFolder(dirname(folder), mode)
  try {
    mkdirSync(folder, { mode })
  } catch (cause) {
    // Another process has created it, or it is a file, and writing into it will fail
    if (errorCode(cause) !== "EEXIST") throw cause
  }
}
