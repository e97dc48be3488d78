import { assert, it } from "@effect/vitest"
import { Effect, Logger } from "effect"
import { TestClock } from "effect/testing"
import { DueLoop } from "../../../src/process/DueLoop.ts"

it.effect("a loop logs the first of several failed scans, and the first after a success", () => {
  const lines: Array<unknown> = []
  const logger = Logger.make(({ message }) => {
    lines.push(message)
  })
  return Effect.gen(function* () {
    const outcomes = ["fails", "fails", "fails", "succeeds", "fails"]
    const retryMillis = 1000
    let scans = 0
    const scan = Effect.suspend(() => {
      scans += 1
      return outcomes[scans - 1] === "fails" ? Effect.fail("away") : Effect.succeed(scans * 1000)
    })
    yield* Effect.forkScoped(new DueLoop().run({ scan, failed: "The scan failed", retryMillis }))
    const logged = []
    for (const _ of outcomes) {
      yield* TestClock.adjust(logged.length === 0 ? 0 : retryMillis)
      logged.push([scans, lines.length])
    }
    assert.deepStrictEqual(logged, [
      [1, 1],
      [2, 1],
      [3, 1],
      [4, 1],
      [5, 2]
    ])
  }).pipe(Effect.scoped, Effect.provide(Logger.layer([logger])))
})
