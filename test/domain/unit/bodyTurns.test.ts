import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Stream } from "effect"
import { heavyBodyBytesMin } from "../../../src/domain/limits/ShareLimits.ts"
import { BodyTurns, CurrentBodyTurns, inBodyTurns } from "../../../src/domain/shares/BodyTurns.ts"

const immediate = () => new Promise<void>((resolve) => setImmediate(resolve))

/** Runs until no caller waits. Returns the number of bodies handled after each turn. */
const turnsOf = async (turns: BodyTurns, handled: ReadonlyArray<string>) => {
  const counts: Array<number> = []
  while (turns.callers > 0) {
    await immediate()
    counts.push(handled.length)
  }
  return counts
}

describe("heavy bodies", () => {
  it("are handled one per turn of the event loop, alternating among callers; small ones at once", async () => {
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

  it.effect("do not delay others if their request is interrupted", () =>
    Effect.gen(function* () {
      const turns = new BodyTurns()
      const take = (caller: string) =>
        Effect.forkChild(turns.take(caller, heavyBodyBytesMin), { startImmediately: true })
      const first = yield* take("first")
      const second = yield* take("second")
      assert.isUndefined(second.pollUnsafe())
      yield* Fiber.interrupt(second)
      assert.strictEqual(turns.callers, 1)
      yield* Fiber.join(first)
      yield* turns.take("third", heavyBodyBytesMin)
      assert.strictEqual(turns.callers, 0)
    })
  )
})

/** docs/reference/keys-and-limits.md#shares */
describe("downloads", () => {
  const chunk = new Uint8Array(heavyBodyBytesMin / 2)

  it("pass 64 KiB per turn of the event loop, alternating among callers", async () => {
    const turns = new BodyTurns()
    const passed: Array<string> = []
    const download = (caller: string, chunks: number) =>
      inBodyTurns(caller, Stream.fromIterable(Array.from({ length: chunks }, () => chunk))).pipe(
        Stream.rechunk(1),
        Stream.runForEach(() => Effect.sync(() => passed.push(caller))),
        Effect.provideService(CurrentBodyTurns, turns),
        Effect.runFork
      )
    for (let n = 0; n < 8; n += 1) download("greedy", 16)
    download("other", 8)
    while (turns.callers > 0) {
      const before = passed.length
      await immediate()
      // Each download that ends a turn has to wait for the next 64 KiB
      assert.isAtMost(passed.length - before, 2)
    }
    assert.lengthOf(passed, 8 * 16 + 8)
    // Eight downloads of one caller delay another caller as much as one download would
    assert.isAtMost(passed.lastIndexOf("other"), 40)
  })

  it.effect("wait with the bytes that have come since their last turn", () =>
    Effect.gen(function* () {
      const waited: Array<number> = []
      class Recorded extends BodyTurns {
        override readonly pass = (_: string, bytes: number) =>
          Effect.sync(() => void waited.push(bytes))
      }
      const five = Stream.rechunk(Stream.fromIterable(Array.from({ length: 5 }, () => chunk)), 1)
      yield* Effect.provideService(
        Stream.runDrain(inBodyTurns("a", five)),
        CurrentBodyTurns,
        new Recorded()
      )
      assert.deepStrictEqual(waited, [heavyBodyBytesMin, heavyBodyBytesMin])
    })
  )

  it.effect("have all their bytes, and short ones do not wait", () =>
    Effect.gen(function* () {
      const turns = new BodyTurns()
      const bytes = Array.from({ length: 5 }, (_, n) => new Uint8Array(50_000).fill(n))
      const passed = yield* Stream.runCollect(inBodyTurns("a", Stream.fromIterable(bytes))).pipe(
        Effect.provideService(CurrentBodyTurns, turns)
      )
      assert.deepStrictEqual(passed, bytes)
      assert.strictEqual(turns.callers, 0)
      const short = inBodyTurns("a", Stream.succeed(new Uint8Array(1000)))
      const busy = yield* Effect.forkChild(turns.take("b", heavyBodyBytesMin), {
        startImmediately: true
      })
      yield* Effect.provideService(Stream.runDrain(short), CurrentBodyTurns, turns)
      assert.isUndefined(busy.pollUnsafe())
      yield* Fiber.join(busy)
    })
  )
})
