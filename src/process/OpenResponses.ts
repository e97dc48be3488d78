import { Context, Effect, Layer } from "effect"
import type { Scope } from "effect"
import { AppConfig } from "../config/Config.ts"
import type { UserId } from "../domain/Ids.ts"
import { ofProcess, openResponsesMax, openResponsesShareMax } from "../domain/limits/ShareLimits.ts"
import { Problem } from "../domain/Problem.ts"
import { FairShares } from "../domain/shares/FairShares.ts"

/**
 * Counts the long-lived responses of this process: event streams of tasks, and requests that wait for a task. They
 * cannot be interrupted in favor of others, so a response beyond its user's share is refused at once.
 * docs/reference/keys-and-limits.md#shares
 */
export class OpenResponses {
  readonly #shares: FairShares

  constructor(capacity: number = openResponsesMax) {
    this.#shares = new FairShares({ capacity, aloneMax: openResponsesShareMax, queueMax: 0 })
  }

  /** Holds a slot until the scope closes. Fails with 429, code 1201, if no slot is free. */
  readonly hold = (user: UserId): Effect.Effect<void, Problem, Scope.Scope> =>
    Effect.mapError(this.#shares.hold(user), () => tooMany)

  /** The number of open responses of all users. */
  get count(): number {
    return this.#shares.taken
  }
}

const tooMany = new Problem({
  code: 1201,
  detail: "This user has too many streams and waiting requests open in this process",
  retryAfterSeconds: 5
})

/** One instance per process. */
export const CurrentOpenResponses = Context.Reference<OpenResponses>(
  "gateway/process/OpenResponses",
  { defaultValue: () => new OpenResponses() }
)

/** With several processes, each gets an equal part of the limit. */
export const layer = Layer.unwrap(
  Effect.map(AppConfig, ({ processes }) =>
    processes === 1
      ? Layer.empty
      : Layer.succeed(
          CurrentOpenResponses,
          new OpenResponses(ofProcess(openResponsesMax, processes))
        )
  )
)
