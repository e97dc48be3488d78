import { Context, DateTime, Duration, Effect, Layer, Option, Schema } from "effect"
import type { ArtifactRow } from "../artifacts/Artifacts.ts"
import { Artifacts } from "../artifacts/Artifacts.ts"
import type { Body } from "../catalog/bodies/Bodies.ts"
import type { CatalogEntry } from "../catalog/CatalogEntry.ts"
import { acceptBody, mapMedia } from "../catalog/media/Media.ts"
import type { InlineMedium } from "../catalog/media/Media.ts"
import { quote } from "../catalog/Price.ts"
import { AppConfig } from "../config/Config.ts"
import type { Credits } from "../domain/Credits.ts"
import { makeTaskId } from "../domain/Ids.ts"
import type { TaskId, UserId } from "../domain/Ids.ts"
import { idempotencyHours } from "../domain/Limits.ts"
import { invalid, Problem, problem } from "../domain/Problem.ts"
import type { StoreUnavailable } from "../domain/Problem.ts"
import { createdBody, taskResult } from "../domain/TaskBody.ts"
import type { TaskFacts } from "../domain/TaskBody.ts"
import { WorkNotifier } from "../process/WorkNotifier.ts"
import type { Principal } from "../users/ApiKeys.ts"
import { VendorClient } from "../vendors/VendorClient.ts"
import { taskEvent } from "../webhooks/Events.ts"
import { OperatorFaults } from "./submission/OperatorFaults.ts"
import { TaskStore } from "./TaskStore.ts"
import type { AcceptOutcome } from "./TaskStore.ts"

/** The path of a model: `/vendors/{vendor}/v1/{model}/{action}`. */
export interface ModelPath {
  readonly vendor: string
  readonly model: string
  readonly action: "generation" | "edit"
}

export interface CreateRequest {
  readonly principal: Principal
  readonly path: ModelPath
  /** The parsed JSON body. */
  readonly body: unknown
  readonly traceId: string
  readonly idempotency: Option.Option<{ readonly key: string; readonly requestHash: Uint8Array }>
}

/** An accepted task, or the first answer to the same request again. */
export interface Created {
  /** JSON text of the 202. */
  readonly body: string
  readonly cost: Credits
  readonly balance: Credits
  readonly sandbox: boolean
  readonly replayed: boolean
}

/** Accepts a task: decodes and prices the body, keeps its media, commits, wakes. Architecture, rule 1. */
export class TaskCreation extends Context.Service<
  TaskCreation,
  {
    /** Fails with 2001 (body), 1101 (balance), 1202 (running tasks) or 2008 (idempotency key); nothing is left behind then. */
    readonly create: (
      entry: CatalogEntry,
      request: CreateRequest
    ) => Effect.Effect<Created, Problem | StoreUnavailable>
  }
>()("gateway/tasks/TaskCreation") {
  static readonly layer = Layer.effect(
    TaskCreation,
    Effect.gen(function* () {
      const artifacts = yield* Artifacts
      const vendors = yield* VendorClient
      const notifier = yield* WorkNotifier
      const accept = yield* makeAccept
      const beforeFaults = yield* makeBeforeFaults

      const create = Effect.fnUntraced(function* (entry: CatalogEntry, request: CreateRequest) {
        const { body, media } = yield* decodeRequest(entry, request.body)
        const sandbox = vendors.isSandbox(entry.vendor, entry.adapter)
        const earlier = yield* beforeFaults(entry, request)
        if (Option.isSome(earlier)) {
          return { ...(yield* firstAnswer(request, earlier.value)), sandbox }
        }
        const taskId = makeTaskId(DateTime.toEpochMillis(yield* DateTime.now))
        // True from the moment in which the task may be committed until it is known that it is not
        let isAccepted = false
        const acceptOnce = (stored: Body) =>
          Effect.suspend(() => {
            isAccepted = true
            return Effect.tap(accept(request, entry, taskId, stored), ({ outcome }) =>
              Effect.sync(() => {
                isAccepted = outcome._tag === "Accepted"
              })
            )
          })
        const { answer, outcome, price } = yield* Effect.acquireUseRelease(
          storeInputs(artifacts, request.principal.userId, taskId, media),
          (inputs) =>
            Effect.flatMap(withReferences(entry, body, inputs), (stored) =>
              Effect.uninterruptible(acceptOnce(stored))
            ),
          // Inputs belong to an accepted task; those of any other create are removed again
          (inputs) =>
            isAccepted ? Effect.void : Effect.ignore(artifacts.remove(inputs.map(({ id }) => id)))
        )
        if (outcome._tag !== "Accepted") {
          return { ...(yield* firstAnswer(request, outcome)), sandbox }
        }
        yield* notifier.notifyTask(taskId)
        yield* notifier.notifyEndpoints(outcome.endpoints)
        return { body: answer, cost: price, balance: outcome.balance, sandbox, replayed: false }
      })

      return TaskCreation.of({ create })
    })
  )
}

/** Decodes a body with its inline media; fails with all faults at once. */
export const decodeRequest = (entry: CatalogEntry, body: unknown) =>
  Effect.mapError(acceptBody(entry.label, body), ({ errors }) => invalid(errors))

const decodeJson = Schema.decodeUnknownEffect(Schema.Json)

/**
 * Contract 4, 5003: before money is held for what the vendor would refuse the service. A request that
 * was answered before is answered again all the same (contract 2).
 */
const makeBeforeFaults = Effect.gen(function* () {
  const faults = yield* OperatorFaults
  const tasks = yield* TaskStore
  const vendors = yield* VendorClient

  return Effect.fnUntraced(function* (entry: CatalogEntry, request: CreateRequest) {
    if (!faults.isAny()) return Option.none()
    const account = yield* Effect.option(vendors.choose(entry.vendor, entry.adapter))
    if (Option.isNone(account)) return Option.none()
    const left = yield* faults.openFor(account.value.accountId, entry.upstreamModel)
    if (Option.isNone(left)) return Option.none()
    if (Option.isSome(request.idempotency)) {
      const { key } = request.idempotency.value
      const since = forgottenBefore(yield* DateTime.now)
      const earlier = yield* tasks.answered(request.principal.userId, key, since)
      if (Option.isSome(earlier)) return earlier
    }
    return yield* new Problem({
      code: 5003,
      detail: "The service cannot reach this model now. The operator has been told",
      retryAfterSeconds: Math.ceil(Duration.toSeconds(left.value))
    })
  })
})

const forgottenBefore = (now: DateTime.Utc) =>
  DateTime.subtractDuration(now, Duration.hours(idempotencyHours))

/** The one transaction: idempotency record, task, hold, event and deliveries. */
const makeAccept = Effect.gen(function* () {
  const { concurrentTasksPerKey, taskDeadline } = yield* AppConfig
  const tasks = yield* TaskStore
  const vendors = yield* VendorClient

  return Effect.fnUntraced(function* (
    request: CreateRequest,
    entry: CatalogEntry,
    taskId: TaskId,
    body: Body
  ) {
    const { path, principal } = request
    const now = yield* DateTime.now
    const task: TaskFacts = {
      id: taskId,
      status: "pending",
      createdAt: now,
      updatedAt: now,
      error: null,
      result: null
    }
    const answer = createdBody(task, path.action)
    const price = quote(entry, body)
    const outcome = yield* tasks.accept({
      ...path,
      resultKind: entry.result,
      taskId,
      userId: principal.userId,
      apiKeyId: principal.apiKeyId,
      body: yield* Effect.orDie(decodeJson(body)),
      sandbox: vendors.isSandbox(entry.vendor, entry.adapter),
      price,
      deadlineAt: DateTime.addDuration(now, taskDeadline),
      traceId: request.traceId,
      now,
      runningMax: concurrentTasksPerKey,
      event: taskEvent(path, taskResult(task, entry.result), now),
      idempotency: Option.map(request.idempotency, (it) => ({
        ...it,
        answer,
        since: forgottenBefore(now)
      }))
    })
    return { outcome, answer, price }
  })
})

/** When a task may have ended, so that another may begin: the spec's polling interval. */
const runningRetryAfterSeconds = 2

/** Contract 2, `Idempotency-Key`: the first answer again, or 2008 for another body. */
const firstAnswer = Effect.fnUntraced(function* (
  request: CreateRequest,
  outcome: Exclude<AcceptOutcome, { readonly _tag: "Accepted" }>
) {
  if (outcome._tag === "BalanceTooLow") {
    return yield* problem(1101, "The available balance is lower than the price: top up the wallet")
  }
  if (outcome._tag === "TooManyRunning") {
    return yield* new Problem({
      code: 1202,
      detail: "This API key has as many unfinished tasks as it may: wait until one has ended",
      retryAfterSeconds: runningRetryAfterSeconds
    })
  }
  const same = Option.exists(
    request.idempotency,
    ({ requestHash }) => Buffer.compare(requestHash, outcome.requestHash) === 0
  )
  if (!same) {
    return yield* problem(2008, "This Idempotency-Key was used before with another request")
  }
  return {
    body: outcome.body,
    cost: outcome.cost,
    balance: outcome.balance,
    replayed: true
  }
})

const storeInputs = (
  artifacts: Artifacts["Service"],
  userId: UserId,
  taskId: TaskId,
  media: ReadonlyArray<InlineMedium>
): Effect.Effect<ReadonlyArray<ArtifactRow>, StoreUnavailable> =>
  Effect.forEach(media, ({ bytes, mime }) =>
    artifacts.put({ userId, taskId, role: "input", mime, bytes })
  )

const placeholder = /^artifact:(\d+)$/u

/** Puts artifact ids where the inline media were: rows hold references (contract 5). */
const withReferences = (
  entry: CatalogEntry,
  body: Body,
  inputs: ReadonlyArray<ArtifactRow>
): Effect.Effect<Body> =>
  inputs.length === 0
    ? Effect.succeed(body)
    : mapMedia(entry.label, body, (_pointer, text) => {
        const stored = inputs[Number(placeholder.exec(text)?.[1])]
        return stored === undefined ? text : `artifact:${stored.id}`
      }).pipe(Effect.orDie)
