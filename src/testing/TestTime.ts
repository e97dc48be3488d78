import { Clock, Duration, Effect, Fiber } from "effect"
import type { TestClock } from "effect/testing"
import { setImmediate } from "node:timers"
import { realWaits } from "../domain/RealTime.ts"

/** After this many idle turns of the event loop, nothing is running. */
const quietTurns = 8

/** In real milliseconds. Work that takes longer, such as a handler of the test, is not awaited. */
const settleMillisMax = 2000

/**
 * The time of a gateway on a test clock. It knows when the gateway's fibers wake, moves the clock from one wake to the
 * next, and lets due work finish at its time.
 */
export interface TestTime {
  /** The test's clock for one process, which records sleepers. After the process has ended, it has none. */
  readonly clock: (isOver: () => boolean) => Clock.Clock
  /** Call this whenever the gateway does something. */
  readonly noted: () => void
  /** Marks work outside Effect, such as files and handlers of the test, so that it is awaited. */
  readonly during: <A, E, R>(work: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>
  /** Waits in real time until all due work is done. */
  readonly settle: Effect.Effect<void>
  readonly advance: (duration: Duration.Input) => Effect.Effect<void>
  /**
   * Advances the time until the condition is true, which is checked whenever nothing more is due. False if it did not
   * become true within this time.
   */
  readonly passUntil: (
    isReached: Effect.Effect<boolean>,
    atMost: Duration.Input
  ) => Effect.Effect<boolean>
  /** Unix time, milliseconds. */
  readonly now: () => number
  /** Runs an effect on the gateway's clock, which is advanced until the effect has ended. */
  readonly whilePassing: <A, E, R>(work: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>
}

const isTestClock = (clock: Clock.Clock): clock is TestClock.TestClock => "adjust" in clock

export const makeTestTime = Effect.map(Clock.Clock, (found): TestTime => {
  // Without a test clock, time passes by itself
  const test = isTestClock(found) ? found : undefined
  const wakes = new Set<Wake>()
  /** Sleepers of what the test runs while time passes. */
  const callers = new Set<Wake>()
  const now = () => found.currentTimeMillisUnsafe()
  const activity = makeActivity()
  const { settle } = activity

  const adjust = (millis: number) =>
    test === undefined ? Effect.die(new Error(noTestClock)) : test.adjust(millis)

  const step = (most: number) =>
    Effect.suspend(() => {
      const next = Math.min(firstOf(callers), firstOf(wakes))
      return adjust(Math.max(0, Math.min(most, next - now())))
    }).pipe(Effect.andThen(settle))

  const passUntil = Effect.fnUntraced(function* (
    isReached: Effect.Effect<boolean>,
    atMost: Duration.Input
  ) {
    yield* settle
    const end = now() + Duration.toMillis(Duration.fromInputUnsafe(atMost))
    while (!(yield* isReached)) {
      if (now() >= end) return false
      yield* step(end - now())
    }
    return true
  })

  const whilePassing = <A, E, R>(work: Effect.Effect<A, E, R>) =>
    Effect.gen(function* () {
      const clock = noting(found, callers, () => false)
      const fiber = yield* Effect.forkChild(Effect.provideService(work, Clock.Clock, clock))
      yield* settle
      while (fiber.pollUnsafe() === undefined) {
        yield* step(callers.size > 0 ? Number.POSITIVE_INFINITY : blindStepMillis)
      }
      return yield* Fiber.join(fiber)
    })

  return {
    ...activity,
    clock: (isOver) => noting(found, wakes, isOver),
    advance: (duration) => Effect.asVoid(passUntil(Effect.succeed(false), duration)),
    passUntil,
    now,
    whilePassing
  }
})

/** The clock, recording its sleepers. */
const noting = (clock: Clock.Clock, sleepers: Set<Wake>, isOver: () => boolean): Clock.Clock => ({
  ...clock,
  sleep: (duration) =>
    Effect.suspend(() => {
      if (isOver()) return Effect.void
      const wake = { at: clock.currentTimeMillisUnsafe() + Duration.toMillis(duration) }
      sleepers.add(wake)
      return Effect.ensuring(
        clock.sleep(duration),
        Effect.sync(() => sleepers.delete(wake))
      )
    })
})

/** Tracks activity in a gateway and waits until there is none. */
const makeActivity = (): Pick<TestTime, "noted" | "during" | "settle"> => {
  let happened = 0
  let underWay = 0
  const noted = () => {
    happened += 1
  }
  const settle = Effect.callback<void>((resume) => {
    const end = performance.now() + settleMillisMax
    let seen = happened
    let quiet = 0
    const turn = () => {
      const isBusy = underWay > 0 || realWaits() > 0
      quiet = isBusy || happened !== seen ? 0 : quiet + 1
      seen = happened
      if (quiet >= quietTurns || performance.now() > end) return resume(Effect.void)
      if (isBusy) setTimeout(turn, 1)
      else setImmediate(turn)
    }
    setImmediate(turn)
  })
  const during = <A, E, R>(work: Effect.Effect<A, E, R>) =>
    Effect.suspend(() => {
      noted()
      underWay += 1
      return Effect.ensuring(
        work,
        Effect.sync(() => {
          underWay -= 1
          noted()
        })
      )
    })
  return { noted, during, settle }
}

const noTestClock =
  "Time can only be moved under a TestClock: run the test with it.effect, or provide TestClock.layer()"

/** The maximum step of the clock while something waits for other things than this clock. */
const blindStepMillis = 1000

interface Wake {
  /** Unix time, milliseconds. */
  readonly at: number
}

const firstOf = (wakes: ReadonlySet<Wake>): number => {
  let first = Number.POSITIVE_INFINITY
  for (const { at } of wakes) first = Math.min(first, at)
  return first
}
