import * as fc from "fast-check"
import { setFlagsFromString } from "node:v8"
import { afterAll, beforeAll, beforeEach } from "vitest"
import { removeTemporaryFolders } from "./temporaryFolder.ts"

/** The seed of all generated cases. `TEST_SEED` sets another one. */
const seed = Number(process.env.TEST_SEED ?? 20_261_122)

fc.configureGlobal({ seed })

beforeEach(({ onTestFailed }) => {
  onTestFailed(() => console.error(`TEST_SEED=${seed}`))
})

// An embedded store of an earlier file leaves WebAssembly without its optimizing compiler (ADR 0233)
beforeAll(() => {
  for (const flag of ["--no-liftoff-only", "--wasm-tier-up", "--wasm-dynamic-tiering"]) {
    setFlagsFromString(flag)
  }
})

// The last hook of each file
afterAll(removeTemporaryFolders)
