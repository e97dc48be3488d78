import * as fc from "fast-check"
import { assert, describe, it } from "vitest"
import { historyArbitrary } from "../../faults/chaos/histories/history.ts"
import { runHistory } from "../../faults/chaos/histories/runHistory.ts"

/** For a longer run: `HISTORIES_MINUTES=10 HISTORIES_SEED=7 npx vitest run` with this file. */
const minutes = Number(process.env["HISTORIES_MINUTES"] ?? 0)
const seed = Number(process.env["HISTORIES_SEED"] ?? 1)
const limits =
  minutes === 0
    ? { numRuns: 4 }
    : {
        numRuns: 1_000_000,
        interruptAfterTimeLimit: minutes * 60_000,
        markInterruptAsFailure: false
      }

describe("the core through processes that die, stores that fail and vendors that break", () => {
  it(
    "keeps every invariant, in an order of fibers that a seed decides",
    async () => {
      const done = { tasks: 0, histories: 0, processes: 0, faults: 0, seconds: 0 }
      const property = fc.asyncProperty(historyArbitrary, fc.nat(), async (history, order) => {
        const { breaches, processes, seconds } = await runHistory(history, order)
        done.histories += 1
        done.tasks += history.tasks.length
        done.faults += history.faults.length
        done.processes += processes
        done.seconds += seconds
        assert.deepStrictEqual(breaches, [])
      })
      try {
        await fc.assert(property, { seed, ...limits })
      } finally {
        console.info("HISTORIES", done, `${Math.round(process.cpuUsage().user / 1e6)} s of CPU`)
      }
      assert.isAtLeast(done.tasks, 50)
    },
    Math.max(240_000, minutes * 60_000 * 3)
  )
})
