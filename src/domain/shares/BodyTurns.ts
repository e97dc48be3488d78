import { Context, Effect, Stream } from "effect"
import { heavyBodyBytesMin } from "../limits/ShareLimits.ts"
import { FairShares } from "./FairShares.ts"
import { inHeavyTurn } from "./Slices.ts"

/**
 * Handles one heavy body per event-loop turn, alternating between callers. However many bodies arrive at once, small
 * requests of others wait for at most one. This limits when a body is parsed and priced, not how much of it is in
 * memory.
 */
export class BodyTurns {
  readonly #shares = new FairShares({ capacity: 1, aloneMax: 1, queueMax: Infinity })

  /** Waits until the caller may handle its body. A small body does not wait. */
  readonly take = (caller: string, bytes: number): Effect.Effect<void> =>
    bytes < heavyBodyBytesMin ? Effect.void : this.#turn(caller, 0)

  /** Waits until the caller may pass these bytes through. */
  readonly pass = (caller: string, bytes: number): Effect.Effect<void> => this.#turn(caller, bytes)

  #turn(caller: string, bytes: number): Effect.Effect<void> {
    return Effect.callback((resume) => {
      const giveUp = this.enter(caller, bytes, () => resume(Effect.void))
      return Effect.sync(() => giveUp?.())
    })
  }

  /** Calls `run`, which passes these bytes through, in a turn of the caller. Returns a function that cancels the wait. */
  readonly enter = (caller: string, bytes: number, run: () => void): (() => void) | undefined =>
    this.#shares.wait(caller, 1, () =>
      inHeavyTurn(() => {
        this.#shares.give(caller)
        run()
      }, bytes)
    )

  /** Callers whose bodies are waiting or being handled. */
  get callers(): number {
    return this.#shares.callers
  }
}

/** One instance per process, which has one event loop. */
export const CurrentBodyTurns = Context.Reference<BodyTurns>("gateway/domain/BodyTurns", {
  defaultValue: () => new BodyTurns()
})

/**
 * Passes the bytes of a download or an upload through unchanged. Every 64 KiB wait for a turn of their caller, so that
 * all of them together take at most a third of the event loop. Benchmark: `hostile`, downloads.
 */
export const inBodyTurns = <E>(
  caller: string,
  bytes: Stream.Stream<Uint8Array, E>
): Stream.Stream<Uint8Array, E> =>
  Stream.unwrap(
    Effect.map(CurrentBodyTurns, (turns) => {
      let seen = 0
      return Stream.tap(bytes, ({ length }) => {
        seen += length
        if (seen < heavyBodyBytesMin) return Effect.void
        const bytes = seen
        seen = 0
        return turns.pass(caller, bytes)
      })
    })
  )
