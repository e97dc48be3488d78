import * as fc from "fast-check"
import { setFlagsFromString } from "node:v8"
import { afterAll, beforeAll, beforeEach } from "vitest"
import { removeTemporaryFolders } from "./temporaryFolder.ts"

/** The seed of all generated cases. Override it with `TEST_SEED`. */
const seed = Number(process.env.TEST_SEED ?? 20_261_122)

fc.configureGlobal({ seed })

beforeEach(({ onTestFailed }) => {
  onTestFailed(() => console.error(`TEST_SEED=${seed}`))
})

// An embedded store in an earlier file may have disabled V8's optimizing compiler for WebAssembly (ADR 0233)
beforeAll(() => {
  for (const flag of ["--no-liftoff-only", "--wasm-tier-up", "--wasm-dynamic-tiering"]) {
    setFlagsFromString(flag)
  }
})

// Runs as the last hook of each file
afterAll(removeTemporaryFolders)
