import { join } from "node:path"
import { defineConfig } from "vitest/config"

/** Clients in other languages, which take minutes to install. */
export default defineConfig({
  test: {
    root: join(import.meta.dirname, ".."),
    // One sample of the page needs the Python clients
    include: ["languages/*.test.ts", "clients/clientsPage.test.ts"],
    globalSetup: ["support/globalSetup.ts"],
    testTimeout: 60_000,
    hookTimeout: 120_000,
    pool: "forks",
    maxWorkers: 1
  }
})
