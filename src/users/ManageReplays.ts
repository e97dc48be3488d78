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
  /** Each caller has its own keys. */
  readonly caller: string
  readonly key: string
}

export interface StoredResponse {
  readonly status: number
  readonly body: string
}

/** A claim without a response that is older than this belongs to a dead process. */
const claimTimeout = Duration.seconds(60)

/** How long a repeat waits for the first request if that is still in progress. */
const waitAtMost = Duration.seconds(10)
const waitSpacing = Schedule.spaced(Duration.millis(50))

/**
 * Makes management POSTs idempotent: a repeat gets the first response. Only successes are stored, because a failure
 * changed nothing and frees its key. ADR 0218. Task creates are different: they write their record in the transaction
 * that accepts the task (`task_accept_many`), so a crash leaves both or neither. The requests here do not share one
 * transaction with their record, so they claim the key first.
 */
export class ManageReplays extends Context.Service<
  ManageReplays,
  {
    /**
     * Fails with 2008 if the key was used for a different request, or with 2010 while the first request is still in
     * progress.
     */
    readonly claim: (
      request: KeyedRequest
    ) => Effect.Effect<IdempotencyClaim, Problem | StoreUnavailable>
    /** Deletes keys older than 24 hours, at most a fixed number per call. */
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
          // Keys expire at the rate at which they were created; the next call deletes the rest
          Effect.repeat({
            while: (deleted) => deleted >= deletedAtOnceMax,
            times: deleteTimesMax
          }),
          Effect.asVoid
        )
      })
    })
  )

  /**
   * Expired keys have no effect even before they are deleted, so it is enough that one process deletes them each
   * minute.
   */
  static readonly layerLoop = Duty.layer(
    { name: "idempotency keys", seconds: 60 },
    Effect.flatMap(ManageReplays, ({ deleteExpired }) => deleteExpired)
  )
}

const deletedAtOnceMax = 1000
/** Enough for ten thousand keys per second. */
const deleteTimesMax = 600

/**
 * `Claimed`: this is the first request, and it must call `complete` whatever its outcome. `Replayed`: this is a repeat.
 */
export type IdempotencyClaim =
  | {
      readonly _tag: "Claimed"
      readonly complete: (exit: Exit.Exit<StoredResponse, unknown>) => Effect.Effect<void>
    }
  | { readonly _tag: "Replayed"; readonly response: StoredResponse }

const isInProgress = (request: KeyedRequest, outcome: ClaimOutcome): boolean =>
  outcome._tag === "Existing" && outcome.status === null && isRepeat(outcome.requestHash, request)
