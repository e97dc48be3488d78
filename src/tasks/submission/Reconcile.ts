import { Context, DateTime, Duration, Effect, Layer, Option } from "effect"
import { retryStore } from "../../db/StoreFailures.ts"
import type { Handle, SubmitRequest, VendorAccount } from "../../vendors/VendorClient.ts"
import { VendorError } from "../../vendors/VendorError.ts"
import type { OwnedTask } from "../TaskStore.ts"
import { VendorAttemptStore } from "./VendorAttemptStore.ts"

/** A submit that was started, and whose response was not recorded. */
export interface UnrecordedSubmit {
  readonly owned: OwnedTask
  readonly startedAt: DateTime.Utc
  readonly account: VendorAccount
  readonly request: SubmitRequest
}

/**
 * Finds the job of a submit whose response was lost with its process, if the vendor can list jobs, and
 * only if exactly one job is there that no other task owns or may own.
 * docs/reference/vendors.md#reconciliation, ADR 0081.
 */
export class Reconcile extends Context.Service<
  Reconcile,
  {
    /** Fails as `AMBIGUOUS` when there is no such unique job. Submits nothing. */
    readonly find: (submit: UnrecordedSubmit) => Effect.Effect<Handle, VendorError>
  }
>()("gateway/tasks/submission/Reconcile") {
  static readonly layer = Layer.effect(
    Reconcile,
    Effect.map(VendorAttemptStore, (attempts) => {
      const findOnce = Effect.fnUntraced(function* (submit: UnrecordedSubmit) {
        const { account, owned, request, startedAt } = submit
        const candidates = yield* account.reconcile(request, DateTime.toEpochMillis(startedAt))
        if (candidates.length === 0) return Option.none<Handle>()
        const others = yield* retryStore(
          attempts.concurrent({
            taskId: owned.task.id,
            accountId: account.accountId,
            from: DateTime.subtractDuration(startedAt, submitsOverlap),
            until: DateTime.addDuration(startedAt, submitsOverlap)
          })
        )
        const free = candidates.filter(({ jobId }) => !others.handleValues.has(jobId))
        return free.length === 1 && others.unresolved === 0
          ? Option.map(Option.fromUndefinedOr(free[0]), ({ handle }) => handle)
          : Option.none<Handle>()
      })
      return Reconcile.of({
        find: Effect.fn("Reconcile.find")(function* (submit) {
          if (submit.account.canList !== true) return yield* ambiguous
          for (let tries = 1; tries <= triesMax; tries += 1) {
            const found = yield* Effect.catch(findOnce(submit), () => Effect.succeedNone)
            if (Option.isSome(found)) return found.value
            if (tries < triesMax) yield* Effect.sleep(betweenTries)
          }
          return yield* ambiguous
        })
      })
    })
  )
}

/** A job that is found may belong to another submit that started within this time of this one. */
const submitsOverlap = Duration.minutes(5)

/** A list may show a new job late, and concurrent submits are recorded soon. */
const triesMax = 3
const betweenTries = Duration.seconds(5)

/** A submit without a known outcome is never repeated. docs/reference/vendors.md#paid-submit-protocol */
export const ambiguous = new VendorError({
  class: "AMBIGUOUS",
  message: "It is not known whether the upstream took the job, so it was not submitted again"
})
