import { readFileSync } from "node:fs"
import { join } from "node:path"

/** The file with the process id of a run's browser. */
export const browserPidFile = (folder: string) => join(folder, "chromium.pid")

/** Stops the run's browser with all its processes, if a test has started it. */
export const stopBrowser = (folder: string): void => {
  try {
    process.kill(-Number(readFileSync(browserPidFile(folder), "utf8")), "SIGKILL")
  } catch {
    // No browser was started
  }
}
