import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { heavyBodyBytesMin } from "../../../src/domain/limits/ShareLimits.ts"
import { BodyTurns } from "../../../src/http/server/bodies/BodyTurns.ts"

const immediate = () => new Promise<void>((resolve) => setImmediate(resolve))

/** Until no caller waits, with the number of bodies handled after each turn. */
const turnsOf = async (turns: BodyTurns, handled: ReadonlyArray<string>) => {
  const counts: Array<number> = []
  while (turns.callers > 0) {
    await immediate()
    counts.push(handled.length)
  }
  return counts
}

describe("heavy bodies", () => {
  it("are handled one in a turn of the loop, in turn among callers; small ones at once", async () => {
    const turns = new BodyTurns()
    const handled: Array<string> = []
    const arrive = (caller: string, bytes = heavyBodyBytesMin) => {
      const handle = Effect.sync(() => handled.push(caller))
      Effect.runFork(Effect.andThen(turns.take(caller, bytes), handle))
    }
    for (let n = 0; n < 4; n += 1) arrive("greedy")
    arrive("other")
    arrive("small", heavyBodyBytesMin - 1)
    assert.deepStrictEqual(handled, ["small"])
    const counts = await turnsOf(turns, handled)
    assert.isTrue(counts.every((count, n) => count - (counts[n - 1] ?? 1) <= 1))
    assert.deepStrictEqual(handled.slice(0, 2), ["small", "greedy"])
    assert.deepStrictEqual(handled.slice(2).toSorted(), ["greedy", "greedy", "greedy", "other"])
    assert.include(handled.slice(2, 4), "other")
  })

  it.effect("of a request that is interrupted keep no others waiting", () =>
    Effect.gen(function* () {
      const turns = new BodyTurns()
      const take = (caller: string) =>
        Effect.forkChild(turns.take(caller, heavyBodyBytesMin), { startImmediately: true })
      const first = yield* take("first")
      const second = yield* take("second")
      assert.isUndefined(second.pollUnsafe())
      yield* Fiber.interrupt(second)
      yield* Fiber.join(first)
      yield* turns.take("third", heavyBodyBytesMin)
      assert.strictEqual(turns.callers, 0)
    })
  )
})
