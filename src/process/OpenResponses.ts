import { Context, Effect } from "effect"
import type { Scope } from "effect"
import { FairShares } from "../domain/FairShares.ts"
import type { UserId } from "../domain/Ids.ts"
import { Problem } from "../domain/Problem.ts"
import { openResponsesMax, openResponsesShareMax } from "../domain/ShareLimits.ts"

/**
 * Responses of this process that stay open while something else goes on: event streams of tasks and requests
 * that wait for one. They cannot be cut for others, so that one beyond its user's share is refused at once.
 * docs/reference/keys-and-limits.md#shares
 */
export class OpenResponses {
  readonly #shares: FairShares

  constructor(capacity: number = openResponsesMax) {
    this.#shares = new FairShares({ capacity, aloneMax: openResponsesShareMax, queueMax: 0 })
  }

  /** Until the scope ends; 429, code 1201, without a place. */
  readonly hold = (user: UserId): Effect.Effect<void, Problem, Scope.Scope> =>
    Effect.mapError(this.#shares.hold(user), () => tooMany)

  /** Those of all users. */
  get count(): number {
    return this.#shares.taken
  }
}

const tooMany = new Problem({
  code: 1201,
  detail: "This user has too many streams and waiting requests open in this process",
  retryAfterSeconds: 5
})

/** One for the process. */
export const CurrentOpenResponses = Context.Reference<OpenResponses>(
  "gateway/process/OpenResponses",
  { defaultValue: () => new OpenResponses() }
)
