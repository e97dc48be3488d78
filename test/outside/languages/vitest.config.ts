import { existsSync } from "node:fs"
import { join } from "node:path"
import { defineConfig } from "vitest/config"

/** What the tests of a file need. `install.ts` creates it, or prints that the language's tools are missing. */
const needs = {
  "go.test.ts": "go/node_modules/.go",
  "java.test.ts": "java/node_modules/.java",
  "bytePlus.test.ts": "vendors/node_modules/.python",
  "luma.test.ts": "vendors/node_modules/.python"
}
const lacking = Object.entries(needs)
  .filter(([, made]) => !existsSync(join(import.meta.dirname, made, ".installed")))
  .map(([name]) => `languages/${name}`)
if (lacking.length > 0)
  console.log(`Left out, because of what is missing here: ${lacking.join(", ")}`)

/** Clients in other languages, which take minutes to install. */
export default defineConfig({
  test: {
    root: join(import.meta.dirname, ".."),
    // One sample of the page needs the Python clients
    include: ["languages/*.test.ts", "clients/clientsPage.test.ts"],
    exclude: lacking,
    globalSetup: ["support/globalSetup.ts"],
    testTimeout: 60_000,
    hookTimeout: 120_000,
    pool: "forks",
    maxWorkers: 1
  }
})
