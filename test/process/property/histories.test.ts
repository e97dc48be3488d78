import * as fc from "fast-check"
import { assert, describe, it } from "vitest"
import { historyArbitrary } from "../../faults/chaos/histories/history.ts"
import { runHistory } from "../../faults/chaos/histories/runHistory.ts"

describe("the core in one process after another, by a seed", () => {
  it("a small one", async () => {
    const began = performance.now()
    const h = fc.sample(historyArbitrary, { numRuns: 8, seed: 3 })
    for (const one of h) {
      const t = process.cpuUsage()
      const out = await runHistory(one, 1)
      console.log(
        one.tasks.length,
        one.faults.map((f) => `${f.call}#${f.nth} ${f.kind}`),
        out,
        process.cpuUsage(t)
      )
    }
    console.log(performance.now() - began)
    assert.isTrue(false)
  }, 120_000)
})
