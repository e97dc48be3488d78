import { defineConfig } from "vitest/config"

export default defineConfig({
  test: {
    root: import.meta.dirname,
    include: ["**/*.test.ts"],
    // `npm run test:agents` and `npm run test:languages` run these
    exclude: ["**/node_modules/**", "agents/**", "languages/**"],
    globalSetup: ["support/globalSetup.ts"],
    testTimeout: 60_000,
    hookTimeout: 120_000,
    pool: "forks",
    maxWorkers: 2
  }
})
