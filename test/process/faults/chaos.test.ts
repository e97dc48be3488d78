import { assert, describe, it } from "vitest"
import { reportOf } from "../../faults/chaos/report.ts"
import { runChaos } from "../../faults/chaos/run.ts"

/** Runs of hours are another form of the same program: test/faults/chaos/README.md. */
describe("three processes over one Postgres, hit by faults for a while", () => {
  it("break no invariant, and leave nothing unfinished once the faults are over", async () => {
    const result = await runChaos({
      seed: 20,
      seconds: 45,
      faultsMin: 5,
      quietSeconds: 120,
      taskDeadline: "50 seconds",
      atOnce: 1,
      restSeconds: [1, 3],
      scale: 0.25,
      without: [],
      tasksPerSecond: 1,
      callsPerSecond: 2,
      hasStandby: false,
      hasPooler: false,
      media: "disk"
    })
    console.log(reportOf(result, "of the tests"))
    const broken = result.breaches.map(
      ({ count, examples, invariant }) => `${invariant}: ${count}, ${examples.join("; ")}`
    )
    assert.deepStrictEqual(broken, [], broken.join("\n"))
    assert.isAtLeast(result.done.length, 5)
    assert.isAtLeast(Number(result.figures["tasks"]), 20)
  }, 360_000)
})
