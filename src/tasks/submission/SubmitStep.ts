import { DateTime, Effect, Option, Result, Schema } from "effect"
import { nameOf } from "../../catalog/Alias.ts"
import { ResponseBody } from "../../catalog/bodies/ResponseBody.ts"
import type { TaskModel } from "../../catalog/CatalogEntry.ts"
import { retryStore } from "../../db/StoreFailures.ts"
import type { TaskRow } from "../../db/TaskRow.ts"
import { accountKeepSeconds } from "../../domain/limits/Limits.ts"
import { mediaDownloadsRetrySeconds } from "../../domain/limits/ShareLimits.ts"
import { modelAt, nextPlace } from "../../domain/task/Candidate.ts"
import type { SkipReason } from "../../domain/task/Candidate.ts"
import { AccountKeys } from "../../process/accounts/AccountKeys.ts"
import { countFallback } from "../../vendors/FallbacksTotal.ts"
import { VendorClient } from "../../vendors/VendorClient.ts"
import type { VendorAccount } from "../../vendors/VendorClient.ts"
import { VendorError } from "../../vendors/VendorError.ts"
import type { JobResult } from "../completion/TaskOutput.ts"
import type { OwnedTask, StoredInputs } from "../running/OwnedTask.ts"
import { mediumNotTaken, TaskMedia } from "../running/TaskMedia.ts"
import type { ResolvedMedia } from "../running/TaskMedia.ts"
import { ratedQueue, submitQueue } from "../running/TaskQueue.ts"
import type { TaskQueue } from "../running/TaskQueue.ts"
import { TaskStore } from "../TaskStore.ts"
import type { NextStep } from "../TaskStore.ts"
import { ConcurrencyLimiter } from "./ConcurrencyLimiter.ts"
import { passOn, skipReasonBefore, skipReasonOf } from "./Fallback.ts"
import { OperatorFaults } from "./OperatorFaults.ts"
import { Fenced, isTransient, PaidSubmit } from "./PaidSubmit.ts"
import { requestOf } from "./TaskEntry.ts"

/** The outcome of a step: the task waits in the store, or its job has a result. */
export type VendorStep =
  | { readonly _tag: "Waits"; readonly until: DateTime.Utc }
  | { readonly _tag: "Done"; readonly job: JobResult }

export const waits = (until: DateTime.Utc) =>
  ({ _tag: "Waits", until }) as const satisfies VendorStep

/** Releases the task into this queue, where it is due at once or after the given seconds. */
export const waitWith = (store: TaskStore["Service"]) =>
  Effect.fnUntraced(function* (
    { epoch, task }: Pick<OwnedTask, "epoch"> & { readonly task: Pick<TaskRow, "id"> },
    queue: TaskQueue,
    more?: Pick<NextStep, "accountId" | "inputs">,
    afterSeconds = 0
  ) {
    const now = yield* DateTime.now
    const until = DateTime.add(now, { seconds: afterSeconds })
    const next = { dueAt: until, queue, ...more }
    yield* retryStore(store.endStep({ taskId: task.id, epoch, next, now }))
    return waits(until)
  })

export type ReportFaults = <A, E>(
  account: VendorAccount,
  upstreamModel: string,
  work: Effect.Effect<A, VendorError | E>
) => Effect.Effect<A, VendorError | E>

/**
 * Resolves the media, then takes a slot, which may take long, then a permit. The task stays `pending` while it waits.
 */
export const makeSubmit = Effect.fnUntraced(function* (reportFaults: ReportFaults) {
  const faults = yield* OperatorFaults
  const inputs = yield* TaskMedia
  const keys = yield* AccountKeys
  const paid = yield* PaidSubmit
  const isAdmitted = yield* makeAdmission
  const accountFor = yield* makeAccountFor
  const passOver = yield* makePassOver
  const waitIn = waitWith(yield* TaskStore)
  const prepare = prepareWith(waitIn, reportFaults)

  /**
   * Makes the task wait in the store, so that tasks waiting for their user's share do not block others in the queue.
   */
  const waitForShare = (
    owned: OwnedTask,
    entry: TaskModel,
    more?: Pick<NextStep, "accountId" | "inputs">
  ) => waitIn(owned, submitQueue(entry), more, mediaDownloadsRetrySeconds)

  /** Leaves the task to a process with an account of the vendor, as there is while a deployment adds the first one. */
  const waitForProcess = Effect.fnUntraced(function* (owned: OwnedTask, entry: TaskModel) {
    if (!(yield* retryStore(keys.isElsewhere(entry.adapter)))) return yield* noAccount
    const { accountId } = owned
    const more = accountId === null ? {} : { accountId }
    return yield* waitIn(owned, submitQueue(entry), more, accountKeepSeconds)
  })

  const mediaOf = (owned: OwnedTask, entry: TaskModel) =>
    Effect.catchIf(
      Effect.asSome(inputs.resolve(owned, entry)),
      (error) =>
        error._tag === "VendorError" &&
        error.vendorCode === mediumNotTaken &&
        nextPlace(owned.task) !== undefined,
      () => Effect.succeedNone
    )

  const submit = Effect.fnUntraced(function* (owned: OwnedTask, entry: TaskModel, n: number) {
    const { upstreamModel } = entry
    const found = yield* accountFor(owned, entry)
    if (Result.isFailure(found)) return yield* passOver(owned, found.failure)
    const account = found.success
    const resolved = yield* mediaOf(owned, entry)
    if (Option.isNone(resolved)) return yield* passOver(owned, "body")
    const { inputs: known, media } = resolved.value
    const until = yield* isAdmitted(owned, entry, account, known)
    if (Option.isSome(until)) return waits(until.value)
    const ready = yield* prepare(owned, entry, account, resolved.value)
    if ("_tag" in ready) return ready
    const submission = { owned, entry, account, media, inputs: known, n, more: ready }
    const outcome = yield* Effect.catchTag(
      reportFaults(account, upstreamModel, paid.submit(submission)),
      "ShareExhausted",
      () => waitForShare(owned, entry, { accountId: account.accountId, inputs: known })
    )
    if (outcome._tag === "Waits") return outcome
    if (outcome._tag === "Refused") return waits(outcome.until)
    if (outcome._tag === "Passed") {
      const { error, until } = outcome
      // Tells the operator even though the task continues
      yield* Effect.ignore(reportFaults(account, upstreamModel, Effect.fail(error)))
      yield* noteSkip(owned.task, skipReasonOf(error) ?? "unavailable")
      return waits(until)
    }
    yield* faults.clear(account.accountId, upstreamModel)
    return outcome._tag === "Accepted"
      ? waits(outcome.until)
      : ({ _tag: "Done", job: { account, result: outcome.result } } as const)
  })
  return (owned: OwnedTask, entry: TaskModel, n: number) =>
    submit(owned, entry, n).pipe(
      Effect.catchTag("ShareExhausted", () => waitForShare(owned, entry)),
      Effect.catchIf(
        (error) => error === noAccount,
        () => waitForProcess(owned, entry)
      )
    )
})

/** The key among a run's inputs that stores the prepared upload: the account and what it returned. */
const preparedKey = "#/prepared"

const preparedAt = (known: StoredInputs, { accountId }: VendorAccount): string | undefined => {
  const [account, ...prepared] = (known[preparedKey] ?? "").split(" ")
  return account === accountId ? prepared.join(" ") : undefined
}

/** The wait in seconds before a temporarily failed upload is retried. */
const prepareRetrySeconds = 30

/**
 * Prepares the submit at the account, such as by uploading a batch's file. This is a separate step whose result is
 * stored, so a process that takes over does not repeat it. Nothing has been bought, so temporary failures are retried
 * until the deadline.
 */
const prepareWith = (waitIn: ReturnType<typeof waitWith>, reportFaults: ReportFaults) =>
  Effect.fnUntraced(function* (
    owned: OwnedTask,
    entry: TaskModel,
    account: VendorAccount,
    { file, inputs: known, media }: ResolvedMedia
  ) {
    const more = file === undefined ? {} : { file }
    if (account.prepare === undefined) return more
    const prepared = preparedAt(known, account)
    if (prepared !== undefined) return { ...more, prepared }
    const { accountId } = account
    const queue = submitQueue(entry)
    const made = yield* Effect.result(
      reportFaults(
        account,
        entry.upstreamModel,
        account.prepare(requestOf(owned.task, entry, media, more))
      )
    )
    if (Result.isSuccess(made)) {
      const inputs = { ...known, [preparedKey]: `${accountId} ${made.success}` }
      return yield* waitIn(owned, queue, { accountId, inputs })
    }
    if (!isTransient(made.failure)) return yield* made.failure
    yield* Effect.logInfo(`The file of task ${owned.task.id} was not uploaded`, made.failure)
    return yield* waitIn(owned, queue, { accountId, inputs: known }, prepareRetrySeconds)
  })

/** Takes the slot and the permit that the submit needs. Without them the task waits in the store. */
const makeAdmission = Effect.gen(function* () {
  const slots = yield* ConcurrencyLimiter
  const waitIn = waitWith(yield* TaskStore)
  return Effect.fnUntraced(function* (
    owned: OwnedTask,
    { upstreamModel }: TaskModel,
    account: VendorAccount,
    known: StoredInputs
  ) {
    const { accountId } = account
    const limit = account.slotsOf?.(upstreamModel)
    const holdsSlot = owned.slotHeld && owned.accountId === accountId
    if (limit !== undefined && !holdsSlot) {
      const request = { taskId: owned.task.id, epoch: owned.epoch, inputs: known }
      const slot = yield* slots.take(request, { ...limit, accountId })
      if (slot === "Ending") return yield* new Fenced()
      if (slot === "Waits") return Option.some(owned.deadlineAt)
    }
    const rate = ratedQueue(account, "submit", upstreamModel)
    if (rate === undefined || rate.name === owned.queue) return Option.none()
    return Option.some((yield* waitIn(owned, rate, { accountId, inputs: known })).until)
  })
})

/**
 * The account to submit to. If an alias has another model left, this may instead be the reason why no account can take
 * the submit now.
 */
const makeAccountFor = Effect.gen(function* () {
  const faults = yield* OperatorFaults
  const vendors = yield* VendorClient

  /**
   * Refuses the simulator's account if the real account has left the configuration, because simulated jobs cost
   * nothing.
   */
  const real = ({ task }: OwnedTask, account: VendorAccount) =>
    account.isSimulated === true && !task.sandbox ? Effect.fail(noAccount) : Effect.succeed(account)

  const choose = Effect.fnUntraced(function* (owned: OwnedTask, entry: TaskModel) {
    if (nextPlace(owned.task) === undefined) {
      return Result.succeed(yield* real(owned, yield* vendors.choose(entry)))
    }
    if (!vendors.isServed(entry)) return Result.fail("no_account" as const)
    const chosen = yield* Effect.result(
      Effect.flatMap(vendors.choose(entry, { onlyFree: true }), (it) => real(owned, it))
    )
    if (Result.isFailure(chosen)) {
      const reason = skipReasonBefore(chosen.failure)
      return reason === undefined ? yield* chosen.failure : Result.fail(reason)
    }
    const fault = yield* faults.remaining(chosen.success.accountId, entry.upstreamModel)
    return Option.isSome(fault)
      ? Result.fail("account_refused" as const)
      : Result.succeed(chosen.success)
  })

  return Effect.fnUntraced(function* (owned: OwnedTask, entry: TaskModel) {
    const bound = boundAccount(owned.task)
    // The request refers to data stored at this account
    if (bound !== undefined) return Result.succeed(yield* real(owned, yield* vendors.owner(bound)))
    const { accountId } = owned
    if (accountId === null) return yield* choose(owned, entry)
    // While the task waited, the account may have left the configuration or started to drain
    const known = yield* Effect.option(vendors.owner(accountId))
    return Option.isSome(known) && known.value.isDraining?.() !== true
      ? Result.succeed(yield* real(owned, known.value))
      : yield* choose(owned, entry)
  })
})

const decodeResponse = Schema.decodeUnknownOption(ResponseBody)

/** The only account that can take the task, for a response that continues an earlier one. */
const boundAccount = ({ body, resultKind }: TaskRow): string | undefined =>
  resultKind === "responses" ? Option.getOrUndefined(decodeResponse(body))?.account : undefined

/** Records why the model is skipped and makes the task wait for its next model, in one statement. Nothing was sent. */
const makePassOver = Effect.gen(function* () {
  const store = yield* TaskStore
  const slots = yield* ConcurrencyLimiter
  return Effect.fnUntraced(function* ({ epoch, task }: OwnedTask, reason: SkipReason) {
    const now = yield* DateTime.now
    const passed = passOn(task, reason, now)
    if (Option.isNone(passed)) return yield* noAccount
    const end = { taskId: task.id, epoch, ...passed.value, now }
    if (!(yield* retryStore(store.endStep(end)))) return yield* new Fenced()
    yield* noteSkip(task, reason)
    yield* slots.notifyReleased
    return waits(now)
  })
})

const noteSkip = (task: TaskRow, reason: SkipReason) =>
  Effect.andThen(
    countFallback(modelAt(task), reason),
    Effect.logInfo(`Task ${task.id} skips ${nameOf(modelAt(task))}: ${reason}`)
  )

const noAccount = new VendorError({
  class: "OPERATOR",
  message: "the vendor no longer has a configured account"
})
