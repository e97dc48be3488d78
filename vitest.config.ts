import { defineConfig } from "vitest/config"
import { BaseSequencer } from "vitest/node"
import type { TestSpecification } from "vitest/node"
import { FailedTests } from "./test/support/failedTests.ts"

/**
 * Fault tests mostly wait for processes, so that the machine has time for others beside them: every second
 * file is one, until there are none left.
 */
class Interleaved extends BaseSequencer {
  override async sort(files: Array<TestSpecification>) {
    const sorted = await super.sort(files)
    const isFault = ({ moduleId }: TestSpecification) => moduleId.includes("/faults/")
    const faults = sorted.filter(isFault)
    const mixed: Array<TestSpecification> = []
    for (const file of sorted) {
      const fault = isFault(file) ? undefined : faults.shift()
      if (fault !== undefined) mixed.push(fault)
      if (!isFault(file)) mixed.push(file)
    }
    return [...mixed, ...faults]
  }
}

export default defineConfig({
  test: {
    globalSetup: ["test/support/globalSetup.ts"],
    reporters: ["default", new FailedTests()],
    setupFiles: ["test/support/seed.ts"],
    // For a test that hangs: no bound of the product, and of a busy machine many times what a test takes
    testTimeout: 120_000,
    hookTimeout: 180_000,
    pool: "forks",
    // A larger young generation saves 6 % of the CPU of all tests
    execArgv: ["--max-semi-space-size=64"],
    isolate: false,
    maxWorkers: 6,
    sequence: { sequencer: Interleaved },
    // What a test logged is shown when it fails
    silent: "passed-only",
    // One project, because each project starts its own workers, and starting a worker is expensive
    include: [
      "test/*/{browser,contract,faults,http,property,time,unit}/**/*.test.ts",
      "test/{conformance,http}/*.test.ts",
      "examples/**/*.test.ts"
    ]
  }
})
