import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { heavyBodyBytesMin } from "../../../src/domain/ShareLimits.ts"
import { BodyTurns } from "../../../src/http/server/bodies/BodyTurns.ts"

const immediate = () => new Promise<void>((resolve) => setImmediate(resolve))

describe("heavy bodies", () => {
  it("are handled one in a turn of the loop, in turn among callers; small ones at once", async () => {
    const turns = new BodyTurns()
    const handled: Array<string> = []
    const arrive = (caller: string, bytes = heavyBodyBytesMin) =>
      turns.run(caller, bytes, () => handled.push(caller))
    for (let n = 0; n < 4; n += 1) arrive("greedy")
    arrive("other")
    arrive("small", heavyBodyBytesMin - 1)
    assert.deepStrictEqual(handled, ["greedy", "small"])
    await immediate()
    assert.lengthOf(handled, 3)
    for (let n = 0; n < 4; n += 1) await immediate()
    assert.deepStrictEqual(handled.slice(2).toSorted(), ["greedy", "greedy", "greedy", "other"])
    assert.include(handled.slice(2, 4), "other")
    await immediate()
    assert.strictEqual(turns.callers, 0)
  })

  it.effect("of a request that is interrupted keep no others waiting", () =>
    Effect.gen(function* () {
      const turns = new BodyTurns()
      turns.run("first", heavyBodyBytesMin, () => {})
      const waits = yield* Effect.forkChild(turns.take("second", heavyBodyBytesMin), {
        startImmediately: true
      })
      assert.isUndefined(waits.pollUnsafe())
      yield* Fiber.interrupt(waits)
      yield* Effect.promise(immediate)
      yield* Effect.promise(immediate)
      assert.strictEqual(turns.callers, 0)
      yield* turns.take("third", heavyBodyBytesMin)
    })
  )
})
