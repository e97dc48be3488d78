import { join } from "node:path"
import { defineConfig } from "vitest/config"

/** These programs have almost three gigabytes, so `npm run test:outside` does not run them. */
export default defineConfig({
  test: {
    root: join(import.meta.dirname, ".."),
    include: ["agents/*.test.ts"],
    globalSetup: ["support/globalSetup.ts"],
    testTimeout: 60_000,
    hookTimeout: 120_000,
    pool: "forks",
    maxWorkers: 1
  }
})
