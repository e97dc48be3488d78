import { Context, Effect } from "effect"
import { FairShares } from "../../../domain/FairShares.ts"
import { heavyBodyBytesMin } from "../../../domain/ShareLimits.ts"

/**
 * Handles one heavy body per turn of the event loop, in turn among the callers: however many arrive at once, small
 * requests of others wait for at most one. Bounds when a body is parsed and priced, not how much of it is in memory.
 */
export class BodyTurns {
  readonly #shares = new FairShares({ capacity: 1, aloneMax: 1, queueMax: Infinity })

  /** Calls back at once for a small body. */
  run(caller: string, bytes: number, handle: () => void): void {
    if (bytes < heavyBodyBytesMin) {
      handle()
      return
    }
    this.#shares.wait(caller, 1, () => {
      // Requests read in this turn are served before the next body
      setImmediate(() => this.#shares.give(caller))
      handle()
    })
  }

  /** The same for a fiber, which continues when it may handle the body. */
  readonly take = (caller: string, bytes: number): Effect.Effect<void> =>
    bytes < heavyBodyBytesMin
      ? Effect.void
      : Effect.callback((resume) => {
          const giveUp = this.#shares.wait(caller, 1, () => {
            setImmediate(() => this.#shares.give(caller))
            resume(Effect.void)
          })
          return Effect.sync(() => giveUp?.())
        })

  /** Callers whose bodies are waiting or being handled. */
  get callers(): number {
    return this.#shares.callers
  }
}

/** One for the process: it has one event loop. */
export const CurrentBodyTurns = Context.Reference<BodyTurns>("gateway/http/server/BodyTurns", {
  defaultValue: () => new BodyTurns()
})
