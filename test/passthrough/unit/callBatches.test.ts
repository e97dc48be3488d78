import { afterEach, assert, beforeEach, describe, it, vi } from "@effect/vitest"
import { Effect, Exit, Fiber, Latch, Scope } from "effect"
import { UserId } from "../../../src/domain/Ids.ts"
import { StoreUnavailable } from "../../../src/domain/Problem.ts"
import { makeCallBatches, makeLastTries } from "../../../src/passthrough/CallBatches.ts"
import type { Batch, Held, WriteBatch } from "../../../src/passthrough/CallBatches.ts"
import type { CallEnd, CallStart } from "../../../src/passthrough/CallStore.ts"
import { callEnd, callStart } from "../../support/wallets.ts"

const user = UserId.make("019aa000-0000-7000-8000-000000000001")
const start = () => callStart(user, 1)

const noGrace = () => -Infinity

type Result = Exit.Exit<Held, StoreUnavailable>

/** Batches over a store that waits for a gate and then does what the test says. */
const make = Effect.fnUntraced(function* (
  behave: WriteBatch = () => Effect.succeed(new Map<string, Held>())
) {
  const written: Array<Batch> = []
  const gate = yield* Latch.make()
  const scope = yield* Scope.make()
  const write = (batch: Batch) =>
    Effect.suspend(() => {
      written.push(batch)
      return Effect.andThen(gate.await, behave(batch))
    })
  const batches = yield* Scope.provide(makeCallBatches(write, noGrace), scope)
  const results = new Map<string, Result>()
  const open = (one: CallStart) => batches.openUnsafe(one, (exit) => results.set(one.id, exit))
  return { ...batches, results, gate, open, stop: Scope.close(scope, Exit.void), written }
})

/** Waits until the condition is true, for a limited time. */
const until = (is: () => boolean) =>
  Effect.promise(async () => {
    const end = performance.now() + 5000
    while (!is() && performance.now() < end) await new Promise((next) => setImmediate(next))
    assert.isTrue(is())
  })

const ids = ({ ends, starts }: Batch) => [ends.map(({ id }) => id), starts.map(({ id }) => id)]
const idsOf = (...items: ReadonlyArray<CallStart | CallEnd>) => items.map(({ id }) => id)

describe("calls that are written together", () => {
  it.live("a hold is written at once; calls that arrive meanwhile are one batch", () =>
    Effect.gen(function* () {
      const { results, closeUnsafe, gate, open, stop, written } = yield* make()
      const [first, second, third] = [start(), start(), start()]
      open(first)
      yield* until(() => written.length === 1)
      const end = callEnd(start(), 1)
      closeUnsafe(end)
      open(second)
      open(third)
      gate.openUnsafe()
      yield* until(() => results.size === 3)
      assert.deepStrictEqual(written.map(ids), [
        [[], idsOf(first)],
        [idsOf(end), idsOf(second, third)]
      ])
      yield* stop
    })
  )

  it.live("a single settlement is written, and so is what remains when the service stops", () =>
    Effect.gen(function* () {
      const { closeUnsafe, gate, stop, written } = yield* make()
      gate.openUnsafe()
      const [first, second] = [callEnd(start(), 1), callEnd(start(), 1)]
      closeUnsafe(first)
      yield* until(() => written.length === 1)
      closeUnsafe(second)
      yield* stop
      assert.deepStrictEqual(
        written.map(({ ends }) => idsOf(...ends)),
        [idsOf(first), idsOf(second)]
      )
    })
  )

  it.live("what remains when the service stops waits for a store that is away for a moment", () =>
    Effect.gen(function* () {
      let isThere = false
      const { closeUnsafe, gate, stop, written } = yield* make(() =>
        isThere
          ? Effect.succeed(new Map<string, Held>())
          : Effect.fail(new StoreUnavailable({ cause: undefined }))
      )
      gate.openUnsafe()
      const end = callEnd(start(), 1)
      closeUnsafe(end)
      yield* until(() => written.length === 1)
      const stopping = yield* Effect.forkChild(stop)
      yield* until(() => written.length === 3)
      isThere = true
      yield* Fiber.join(stopping)
      assert.deepStrictEqual(ids(written.at(-1)!), [idsOf(end), []])
    })
  )

  it.live("a call that is abandoned gets no result: it is not held, or its hold is released", () =>
    Effect.gen(function* () {
      const { results, gate, open, stop, written } = yield* make()
      const [first, second] = [start(), start()]
      const giveUpFirst = open(first)
      yield* until(() => written.length === 1)
      const giveUpSecond = open(second)
      giveUpFirst()
      giveUpSecond()
      gate.openUnsafe()
      yield* until(() => written.length === 2)
      yield* stop
      assert.deepStrictEqual(ids(written[1]!), [idsOf(first), []])
      assert.strictEqual(written[1]!.ends[0]!.outcome, "released")
      assert.strictEqual(results.size, 0)
    })
  )

  it.live("a call that cannot be written fails alone", () =>
    Effect.gen(function* () {
      const bad = [start(), start()]
      const refused = start()
      const { results, closeUnsafe, gate, open, stop, written } = yield* make((batch) =>
        ids(batch).flat().includes(bad[0]!.id) || ids(batch).flat().includes(bad[1]!.id)
          ? Effect.die("broken")
          : Effect.succeed(new Map([[refused.id, "balance" as const]]))
      )
      const good = start()
      closeUnsafe(callEnd(bad[0]!, 1))
      const end = callEnd(start(), 1)
      closeUnsafe(end)
      for (const one of [bad[1]!, good, refused]) open(one)
      gate.openUnsafe()
      yield* until(() => results.size === 3)
      assert.isTrue(Exit.isFailure(results.get(bad[1]!.id)!))
      assert.deepStrictEqual(results.get(good.id), Exit.succeed(undefined))
      assert.deepStrictEqual(results.get(refused.id), Exit.succeed("balance"))
      assert.isTrue(written.some((batch) => batch.ends.length === 1 && batch.ends[0] === end))
      yield* stop
    })
  )

  it.live(
    "while the store is unavailable a hold fails at once; a settlement is retried until it is back",
    () =>
      Effect.gen(function* () {
        let isAway = true
        const { results, closeUnsafe, gate, open, stop, written } = yield* make(() =>
          isAway
            ? Effect.fail(new StoreUnavailable({ cause: "away" }))
            : Effect.succeed(new Map<string, Held>())
        )
        gate.openUnsafe()
        const [first, end] = [start(), callEnd(start(), 1)]
        closeUnsafe(end)
        open(first)
        yield* until(() => results.size === 1)
        assert.isTrue(Exit.isFailure(results.get(first.id)!))
        isAway = false
        const before = written.length
        yield* until(() => written.length > before)
        // It may have been held, so the hold is released
        assert.deepStrictEqual(idsOf(...written.at(-1)!.ends), idsOf(end, first))
        yield* stop
      })
  )
})

describe("the last attempts of a service that stops while its store is away", () => {
  beforeEach(() => void vi.useFakeTimers({ toFake: ["setTimeout", "performance"] }))
  afterEach(() => void vi.useRealTimers())

  /** The number of seconds until it gives up. */
  const lasts = async (graceEnd: (began: number) => number) => {
    const began = performance.now()
    const tryAgain = await Effect.runPromise(makeLastTries(() => graceEnd(began)))
    const tries = Effect.runFork(Effect.repeat(tryAgain, { while: (is) => is }))
    while (tries.pollUnsafe() === undefined) {
      await vi.advanceTimersByTimeAsync(100)
      await new Promise((next) => setImmediate(next))
    }
    return (performance.now() - began) / 1000
  }

  it("continue for 10 seconds, or for the grace period of the process", async () => {
    const withoutGrace = await lasts(noGrace)
    assert.isAbove(withoutGrace, 5)
    assert.isAtMost(withoutGrace, 10)
    const withGrace = await lasts((began) => began + 300_000)
    assert.isAbove(withGrace, 295)
    assert.isAtMost(withGrace, 300)
  })

  it("end soon after a second signal", async () => {
    const seconds = await lasts((began) => (performance.now() < began + 60_000 ? Infinity : 0))
    assert.isAbove(seconds, 60)
    assert.isAtMost(seconds, 65)
  })
})
