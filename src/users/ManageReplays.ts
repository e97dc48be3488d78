import { Context, DateTime, Duration, Effect, Exit, Layer, Option, Schedule } from "effect"
import { SecureRandom } from "effect/crypto"
import { retryStore } from "../db/StoreFailures.ts"
import { idempotencyHours } from "../domain/Limits.ts"
import { problem } from "../domain/Problem.ts"
import type { Problem, StoreUnavailable } from "../domain/Problem.ts"
import { Secrets } from "../process/Secrets.ts"
import { ManageReplayStore } from "./ManageReplayStore.ts"
import type { ClaimOutcome, NewClaim } from "./ManageReplayStore.ts"

/** A POST with an `Idempotency-Key`. */
export interface KeyedRequest {
  /** Whose key it is: keys of one caller say nothing to another. */
  readonly caller: string
  readonly key: string
  readonly requestHash: Uint8Array
}

export interface KeptAnswer {
  readonly status: number
  readonly body: string
}

/** A claim without an answer belongs to a process that died, after this. */
const lostAfter = Duration.seconds(60)

/** A repeat that comes while the first request is under way waits for its answer, at most so long. */
const waitAtMost = Duration.seconds(10)
const waitSpacing = Schedule.spaced(Duration.millis(50))

/**
 * Gives the first answer of a management POST again to a repeat. Only successes are kept: after a
 * failure nothing was changed, and the key is free (ADR 0032). Contract 2.
 */
export class ManageReplays extends Context.Service<
  ManageReplays,
  {
    /**
     * Answers what stands behind the key, or `None` when this request is the first; it must then
     * call `keep` or `release`. Fails with 2008, or 2010 while the first is still under way.
     */
    readonly begin: (request: KeyedRequest) => Effect.Effect<Begun, Problem | StoreUnavailable>
    /** Removes some of what is older than 24 hours. For the sweeper. */
    readonly forgetOld: Effect.Effect<void, StoreUnavailable>
  }
>()("gateway/users/ManageReplays") {
  static readonly layer = Layer.effect(
    ManageReplays,
    Effect.gen(function* () {
      const store = yield* ManageReplayStore
      const secrets = yield* Secrets

      const claimOf = (request: KeyedRequest, claim: string, now: DateTime.Utc): NewClaim => ({
        ...request,
        claim,
        now,
        since: DateTime.subtractDuration(now, Duration.hours(idempotencyHours)),
        lostBefore: DateTime.subtractDuration(now, lostAfter)
      })

      const begin = Effect.fnUntraced(function* (request: KeyedRequest) {
        const claim = SecureRandom.uuidV4Unsafe()
        const tried = Effect.flatMap(DateTime.now, (now) =>
          store.claim(claimOf(request, claim, now))
        )
        const outcome = yield* tried.pipe(
          Effect.repeat({ schedule: waitSpacing, while: (it) => isUnderWay(request, it) }),
          Effect.timeoutOption(waitAtMost)
        )
        if (Option.isNone(outcome)) {
          return yield* problem(2010, "The first request with this Idempotency-Key is under way")
        }
        const found = outcome.value
        if (found._tag === "Claimed") {
          const own = { ...request, claim }
          return {
            _tag: "First",
            end: (exit) =>
              Exit.isSuccess(exit) && exit.value.status < 300
                ? retryStore(store.answer(own, exit.value.status, secrets.encrypt(exit.value.body)))
                : Effect.ignore(store.release(own))
          } satisfies Begun
        }
        if (Buffer.compare(found.requestHash, request.requestHash) !== 0) {
          return yield* problem(2008, "This Idempotency-Key was used before with another request")
        }
        const { answer, status } = found
        if (status === null || answer === null) {
          return yield* problem(2010, "The first request with this Idempotency-Key is under way")
        }
        const body = yield* Effect.orDie(secrets.decrypt(answer))
        return { _tag: "Repeat", answer: { status, body } } satisfies Begun
      })

      return ManageReplays.of({
        begin,
        forgetOld: Effect.flatMap(DateTime.now, (now) =>
          store.forget(
            DateTime.subtractDuration(now, Duration.hours(idempotencyHours)),
            forgottenAtOnceMax
          )
        ).pipe(
          // A busy day's keys grow old as fast as they came; what is left is for the next sweep
          Effect.repeat({
            while: (removed) => removed >= forgottenAtOnceMax,
            times: forgetTimesMax
          }),
          Effect.asVoid
        )
      })
    })
  )
}

const forgottenAtOnceMax = 1000
const forgetTimesMax = 20

/** The first request ends with `end`, whatever became of it; a repeat is answered as the first was. */
export type Begun =
  | {
      readonly _tag: "First"
      readonly end: (exit: Exit.Exit<KeptAnswer, unknown>) => Effect.Effect<void>
    }
  | { readonly _tag: "Repeat"; readonly answer: KeptAnswer }

const isUnderWay = (request: KeyedRequest, outcome: ClaimOutcome): boolean =>
  outcome._tag === "Earlier" &&
  outcome.status === null &&
  Buffer.compare(outcome.requestHash, request.requestHash) === 0
