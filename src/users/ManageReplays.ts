import { Context, DateTime, Duration, Effect, Exit, Layer, Option, Schedule } from "effect"
import { SecureRandom } from "effect/crypto"
import { retryStore } from "../db/StoreFailures.ts"
import { idempotencyHours } from "../domain/limits/Limits.ts"
import { problem } from "../domain/Problem.ts"
import type { Problem, StoreUnavailable } from "../domain/Problem.ts"
import { isRepeat } from "../domain/RequestHash.ts"
import type { RequestHash } from "../domain/RequestHash.ts"
import * as Duty from "../process/heartbeat/Duty.ts"
import { Secrets } from "../process/secrets/Secrets.ts"
import { ManageReplayStore } from "./ManageReplayStore.ts"
import type { ClaimOutcome, NewClaim } from "./ManageReplayStore.ts"

/** A POST with an `Idempotency-Key`. */
export interface KeyedRequest extends RequestHash {
  /** Keys are separate for each caller. */
  readonly caller: string
  readonly key: string
}

export interface StoredResponse {
  readonly status: number
  readonly body: string
}

/** After this time a claim without a response belongs to a dead process. */
const claimTimeout = Duration.seconds(60)

/**
 * How long a repeat waits for the response of a first request in
 * progress.
 */
const waitAtMost = Duration.seconds(10)
const waitSpacing = Schedule.spaced(Duration.millis(50))

/**
 * Replays the first response of a management POST to a repeat. Only successes are stored: a failure
 * changed nothing, and its key is free again. ADR 0218. Creates of tasks have their record in the transaction that
 * accepts (`task_accept_many`), so that a crash leaves either both or neither; these requests run outside of one, and
 * claim their key before.
 */
export class ManageReplays extends Context.Service<
  ManageReplays,
  {
    /** Fails with 2008 for another request, or with 2010 while the first is still in progress. */
    readonly claim: (
      request: KeyedRequest
    ) => Effect.Effect<IdempotencyClaim, Problem | StoreUnavailable>
    /** Deletes keys older than 24 hours, a bounded number per call. */
    readonly deleteExpired: Effect.Effect<void, StoreUnavailable>
  }
>()("gateway/users/ManageReplays") {
  static readonly layer = Layer.effect(
    ManageReplays,
    Effect.gen(function* () {
      const store = yield* ManageReplayStore
      const secrets = yield* Secrets

      const newClaim = (request: KeyedRequest, claim: string, now: DateTime.Utc): NewClaim => ({
        ...request,
        claim,
        now,
        since: DateTime.subtractDuration(now, Duration.hours(idempotencyHours)),
        lostBefore: DateTime.subtractDuration(now, claimTimeout)
      })

      const claim = Effect.fnUntraced(function* (request: KeyedRequest) {
        const claimId = SecureRandom.uuidV4Unsafe()
        const attempt = Effect.flatMap(DateTime.now, (now) =>
          store.claim(newClaim(request, claimId, now))
        )
        const outcome = yield* attempt.pipe(
          Effect.repeat({ schedule: waitSpacing, while: (it) => isInProgress(request, it) }),
          Effect.timeoutOption(waitAtMost)
        )
        if (Option.isNone(outcome)) {
          return yield* problem(
            2010,
            "The first request with this Idempotency-Key is still in progress"
          )
        }
        const found = outcome.value
        if (found._tag === "Claimed") {
          const own = { ...request, claim: claimId }
          return {
            _tag: "Claimed",
            complete: (exit) =>
              Exit.isSuccess(exit) && exit.value.status < 300
                ? retryStore(
                    store.complete(own, exit.value.status, secrets.encrypt(exit.value.body))
                  )
                : Effect.ignore(store.release(own))
          } satisfies IdempotencyClaim
        }
        if (!isRepeat(found.requestHash, request)) {
          return yield* problem(2008, "This Idempotency-Key was used before with another request")
        }
        const { response, status } = found
        if (status === null || response === null) {
          return yield* problem(
            2010,
            "The first request with this Idempotency-Key is still in progress"
          )
        }
        const body = yield* Effect.orDie(secrets.decrypt(response))
        return { _tag: "Replayed", response: { status, body } } satisfies IdempotencyClaim
      })

      return ManageReplays.of({
        claim,
        deleteExpired: Effect.flatMap(DateTime.now, (now) =>
          store.deleteOlder(
            DateTime.subtractDuration(now, Duration.hours(idempotencyHours)),
            deletedAtOnceMax
          )
        ).pipe(
          // A day's keys expire as fast as they came; the next call deletes the rest
          Effect.repeat({
            while: (deleted) => deleted >= deletedAtOnceMax,
            times: deleteTimesMax
          }),
          Effect.asVoid
        )
      })
    })
  )

  /** An expired key has no effect even before it is deleted, so one process deletes them each minute. */
  static readonly layerLoop = Duty.layer(
    { name: "idempotency keys", seconds: 60 },
    Effect.flatMap(ManageReplays, ({ deleteExpired }) => deleteExpired)
  )
}

const deletedAtOnceMax = 1000
/** Ten thousand keys a second. */
const deleteTimesMax = 600

/**
 * `Claimed`: the first request, which must call `complete` whatever its
 * outcome. `Replayed`: a repeat.
 */
export type IdempotencyClaim =
  | {
      readonly _tag: "Claimed"
      readonly complete: (exit: Exit.Exit<StoredResponse, unknown>) => Effect.Effect<void>
    }
  | { readonly _tag: "Replayed"; readonly response: StoredResponse }

const isInProgress = (request: KeyedRequest, outcome: ClaimOutcome): boolean =>
  outcome._tag === "Existing" && outcome.status === null && isRepeat(outcome.requestHash, request)
