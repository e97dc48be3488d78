import * as fc from "fast-check"
import { beforeEach } from "vitest"

/** The seed of all generated cases. `TEST_SEED` sets another one. */
const seed = Number(process.env.TEST_SEED ?? 20_261_122)

fc.configureGlobal({ seed })

beforeEach(({ onTestFailed }) => {
  onTestFailed(() => console.error(`TEST_SEED=${seed}`))
})
