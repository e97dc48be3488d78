import { defineConfig } from "vitest/config"

const project = (name: string, include: ReadonlyArray<string>) => ({
  extends: true as const,
  test: { name, include: [...include] }
})

export default defineConfig({
  test: {
    globalSetup: ["test/support/globalSetup.ts"],
    setupFiles: ["test/support/seed.ts"],
    testTimeout: 30_000,
    hookTimeout: 60_000,
    pool: "forks",
    isolate: false,
    maxWorkers: 4,
    // What a test logged is shown when it fails
    silent: "passed-only",
    projects: [
      project("faults", ["test/*/faults/**/*.test.ts"]),
      project("service", [
        "test/*/{browser,contract,http,time}/**/*.test.ts",
        "test/http/*.test.ts",
        "examples/**/*.test.ts"
      ]),
      project("quick", ["test/*/{unit,property}/**/*.test.ts", "test/conformance/*.test.ts"])
    ]
  }
})
