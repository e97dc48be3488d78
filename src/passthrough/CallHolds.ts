import { Effect, Exit } from "effect"
import type { Scope } from "effect"
import { problem } from "../domain/Problem.ts"
import type { Problem } from "../domain/Problem.ts"
import { storeRetryMillis } from "../domain/Retries.ts"
import type { Process } from "../process/heartbeat/Process.ts"
import { makeFiberSlots } from "../process/SlotArray.ts"
import type { HoldsLeft } from "./CallHoldStore.ts"
import type { CallStart, CallStore } from "./CallStore.ts"
import type { Reservations } from "./reservations/Reservations.ts"
import type { Reached } from "./UpstreamCalls.ts"

/**
 * A process's view of the hold of one call. After a silence longer than the lease of its calls, others may have
 * released the hold: the call then takes it again before it relays another byte. ADR 0270.
 */
export interface CallHold {
  /**
   * Whether the process has had no such silence since the hold was taken. Cheap, because it is called for each chunk.
   */
  readonly isHeld: () => boolean
  /** Calls `done` once, with whether the hold still exists and belongs to a process that counts as alive again. */
  readonly retake: (done: (isHeld: boolean) => void) => void
  /** The call draws on the reservation of its key, so it has no separate hold. */
  drawn: boolean
}

interface Services {
  readonly process: Pick<Process["Service"], "id" | "silences" | "confirm">
  readonly store: Pick<CallStore["Service"], "holdsLeft">
  readonly reservations: Pick<Reservations, "running">
}

interface Waiting {
  readonly start: CallStart
  readonly hold: CallHold
  readonly done: (isHeld: boolean, silences: number) => void
}

/** Retakes holds. Concurrent requests share one read of the store. */
export const makeCallHolds = Effect.fnUntraced(function* (
  services: Services
): Effect.fn.Return<(start: CallStart) => CallHold, never, Scope.Scope> {
  const { process } = services
  const fork = yield* makeFiberSlots()
  let waiting: Array<Waiting> = []
  let isWorking = false

  const work = Effect.gen(function* () {
    while (waiting.length > 0) {
      const asked = waiting
      waiting = []
      const { left, silences } = yield* readHolds(services)
      for (const { done, hold, start } of asked) done(isLeft(services, left, start, hold), silences)
    }
    isWorking = false
  })
  const retake = (one: Waiting) => {
    waiting.push(one)
    if (isWorking) return
    isWorking = true
    fork(work)
  }

  return (start) => {
    let since = process.silences()
    const hold: CallHold = {
      drawn: false,
      isHeld: () => since === process.silences(),
      retake: (done) =>
        retake({
          start,
          hold,
          done: (isHeld, silences) => {
            if (isHeld) since = silences
            done(isHeld)
          }
        })
    }
    return hold
  }
})

/** Registers the process again and reads its holds as soon as the store is available. */
const readHolds = Effect.fnUntraced(function* ({ process, store }: Services) {
  let failures = 0
  while (true) {
    const exit = yield* Effect.exit(
      Effect.gen(function* () {
        yield* process.confirm
        // Counted before the read, so that a silence during it counts as a new one
        const silences = process.silences()
        return { left: yield* store.holdsLeft(process.id), silences }
      })
    )
    if (Exit.isSuccess(exit)) return exit.value
    failures += 1
    yield* Effect.sleep(storeRetryMillis(failures))
  }
})

const isLeft = (
  { reservations: { running } }: Services,
  { calls, reservations }: HoldsLeft,
  { id, key }: CallStart,
  { drawn }: CallHold
): boolean => (drawn ? (reservations.get(key) ?? 0n) >= running(key) : calls.has(id))

const released = problem(
  5003,
  "The gateway was interrupted for so long that the call was abandoned: nothing was charged, try again"
)

/**
 * Relays a whole response only if its call is held, and takes the hold again if necessary. A stream checks this for
 * each chunk.
 */
export const stillHeld = (hold: CallHold, reached: Reached): Effect.Effect<Reached, Problem> =>
  hold.isHeld() || !(reached.response.body instanceof Uint8Array)
    ? Effect.succeed(reached)
    : Effect.callback((resume) =>
        hold.retake((isHeld) => resume(isHeld ? Effect.succeed(reached) : Effect.fail(released)))
      )
