import { Context, DateTime, Duration, Effect, Layer, Option } from "effect"
import { retryStore } from "../../db/StoreFailures.ts"
import type { Handle, SubmitRequest, VendorAccount } from "../../vendors/VendorClient.ts"
import { VendorError } from "../../vendors/VendorError.ts"
import type { OwnedTask } from "../TaskStore.ts"
import { VendorAttemptStore } from "./VendorAttemptStore.ts"

/** A submit that was begun, and whose answer was not recorded. */
export interface Unrecorded {
  readonly owned: OwnedTask
  readonly startedAt: DateTime.Utc
  readonly account: VendorAccount
  readonly request: SubmitRequest
}

/**
 * Finds the job of a submit whose answer was lost with its process, if the vendor can list: only when
 * exactly one job is there that no other task owns or may own. Contract 7, ADR 0081.
 */
export class Reconcile extends Context.Service<
  Reconcile,
  {
    /** Fails as `AMBIGUOUS` when that cannot be told. Nothing is submitted. */
    readonly find: (submit: Unrecorded) => Effect.Effect<Handle, VendorError>
  }
>()("gateway/tasks/submission/Reconcile") {
  static readonly layer = Layer.effect(
    Reconcile,
    Effect.map(VendorAttemptStore, (attempts) => {
      const look = Effect.fnUntraced(function* (submit: Unrecorded) {
        const { account, owned, request, startedAt } = submit
        const candidates = yield* account.reconcile(request, DateTime.toEpochMillis(startedAt))
        if (candidates.length === 0) return Option.none<Handle>()
        const others = yield* retryStore(
          attempts.neighbours({
            taskId: owned.task.id,
            accountId: account.accountId,
            from: DateTime.subtractDuration(startedAt, submitsOverlap),
            until: DateTime.addDuration(startedAt, submitsOverlap)
          })
        )
        const free = candidates.filter(({ jobId }) => !others.handleValues.has(jobId))
        return free.length === 1 && others.unsettled === 0
          ? Option.map(Option.fromUndefinedOr(free[0]), ({ handle }) => handle)
          : Option.none<Handle>()
      })
      return Reconcile.of({
        find: Effect.fn("Reconcile.find")(function* (submit) {
          if (submit.account.canList !== true) return yield* ambiguous
          for (let tries = 1; tries <= looksMax; tries += 1) {
            const found = yield* Effect.catch(look(submit), () => Effect.succeedNone)
            if (Option.isSome(found)) return found.value
            if (tries < looksMax) yield* Effect.sleep(betweenLooks)
          }
          return yield* ambiguous
        })
      })
    })
  )
}

/** Submits that began so near to this one may have bought what is found for it. */
const submitsOverlap = Duration.minutes(5)

/** A list may show a new job late, and submits that are under way are soon recorded. */
const looksMax = 3
const betweenLooks = Duration.seconds(5)

/** Contract 7: never submitted twice blindly. */
export const ambiguous = new VendorError({
  class: "AMBIGUOUS",
  message: "It is not known whether the upstream took the job, so it was not submitted again"
})
