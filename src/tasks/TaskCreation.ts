import { Context, DateTime, Duration, Effect, Layer, Option, Schema } from "effect"
import type { ArtifactRow } from "../artifacts/Artifacts.ts"
import { Artifacts } from "../artifacts/Artifacts.ts"
import type { Body } from "../catalog/bodies/Bodies.ts"
import type { CatalogEntry } from "../catalog/CatalogEntry.ts"
import { mapMedia } from "../catalog/media/Media.ts"
import type { InlineMedium } from "../catalog/media/Media.ts"
import { quote } from "../catalog/Price.ts"
import type { PriceRule } from "../catalog/Price.ts"
import { endingOf } from "../catalog/PriceRow.ts"
import type { Ending } from "../catalog/PriceRow.ts"
import { AppConfig } from "../config/Config.ts"
import type { Credits } from "../domain/Credits.ts"
import { makeTaskId } from "../domain/Ids.ts"
import type { TaskId, UserId } from "../domain/Ids.ts"
import { idempotencyHours } from "../domain/Limits.ts"
import { Problem, problem } from "../domain/Problem.ts"
import type { StoreUnavailable } from "../domain/Problem.ts"
import { isRepeat } from "../domain/RequestHash.ts"
import type { RequestHash } from "../domain/RequestHash.ts"
import { createdBody, taskResult } from "../domain/TaskBody.ts"
import type { TaskFacts } from "../domain/TaskBody.ts"
import { WorkNotifier } from "../process/WorkNotifier.ts"
import type { Principal } from "../users/ApiKeys.ts"
import { VendorClient } from "../vendors/VendorClient.ts"
import { taskEvent } from "../webhooks/Events.ts"
import { decodeRequest } from "./RequestBody.ts"
import { OperatorFaults } from "./submission/OperatorFaults.ts"
import { TaskStore } from "./TaskStore.ts"
import type { AcceptOutcome } from "./TaskStore.ts"

/** The path of a model: `/vendors/{vendor}/v1/{model}/{action}`. */
export interface ModelPath {
  readonly vendor: string
  readonly model: string
  readonly action: "generation" | "edit"
}

/** A model with its price of now, and the number of the catalog that both stand in. */
export interface SoldModel {
  readonly entry: CatalogEntry
  readonly price: PriceRule
  readonly catalogId: number | null
}

export interface CreateRequest {
  readonly principal: Principal
  readonly path: ModelPath
  /** The parsed JSON body. */
  readonly body: unknown
  readonly traceId: string
  readonly idempotency: Option.Option<RequestHash & { readonly key: string }>
}

/** An accepted task, or the first response again for a repeated request. */
export interface Created {
  /** JSON text of the 202. */
  readonly body: string
  readonly cost: Credits
  readonly balance: Credits
  readonly sandbox: boolean
  /** What the vendor has announced of the model. */
  readonly ending: Ending | undefined
  readonly replayed: boolean
}

/**
 * Accepts a task: decodes and prices the body, stores its media, commits, notifies.
 * docs/reference/tasks.md#create
 */
export class TaskCreation extends Context.Service<
  TaskCreation,
  {
    /**
     * Fails with 2001 (body), 1101 (balance), 1202 (running tasks), 2008 (idempotency key) or 5003
     * (operator fault); then nothing is stored.
     */
    readonly create: (
      sold: SoldModel,
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
      const checkFaults = yield* makeFaultCheck

      const create = Effect.fnUntraced(function* (sold: SoldModel, request: CreateRequest) {
        const { entry } = sold
        const ending = endingOf(entry)
        const { body, media } = yield* decodeRequest(entry, request.body)
        const sandbox = vendors.isSandbox(entry.vendor, entry.adapter)
        const earlier = yield* checkFaults(entry, request)
        if (Option.isSome(earlier)) {
          return { ...(yield* replayOrFail(request, earlier.value)), sandbox, ending }
        }
        const taskId = makeTaskId(DateTime.toEpochMillis(yield* DateTime.now))
        // True from when the task may be committed until it is known that it was not
        let isAccepted = false
        const acceptOnce = (stored: Body) =>
          Effect.suspend(() => {
            isAccepted = true
            return Effect.tap(accept(request, sold, taskId, stored), ({ outcome }) =>
              Effect.sync(() => {
                isAccepted = outcome._tag === "Accepted"
              })
            )
          })
        const { outcome, price, responseBody } = yield* Effect.acquireUseRelease(
          storeInputs(artifacts, request.principal.userId, taskId, media),
          (inputs) =>
            Effect.flatMap(withReferences(entry, body, inputs), (stored) =>
              Effect.uninterruptible(acceptOnce(stored))
            ),
          // Stored inputs belong to an accepted task; those of any other create are removed
          (inputs) =>
            isAccepted ? Effect.void : Effect.ignore(artifacts.remove(inputs.map(({ id }) => id)))
        )
        if (outcome._tag !== "Accepted") {
          return { ...(yield* replayOrFail(request, outcome)), sandbox, ending }
        }
        yield* notifier.notifyTask(taskId)
        yield* notifier.notifyEndpoints(outcome.endpoints)
        return {
          body: responseBody,
          cost: price,
          balance: outcome.balance,
          sandbox,
          ending,
          replayed: false
        }
      })

      return TaskCreation.of({ create })
    })
  )
}

const decodeJson = Schema.decodeUnknownEffect(Schema.Json)

/**
 * Fails with 5003 while an operator fault is open, or when no account has the model: before
 * money is held for a job that cannot be submitted. A repeated request is still replayed. ADR 0083.
 */
const makeFaultCheck = Effect.gen(function* () {
  const faults = yield* OperatorFaults
  const tasks = yield* TaskStore
  const vendors = yield* VendorClient

  /** How long the fault of the account that is next stays open. */
  const faultLeft = Effect.fnUntraced(function* (entry: CatalogEntry) {
    if (!vendors.isServed(entry)) return Option.some(unservedRetryAfter)
    if (!faults.hasOpen()) return Option.none()
    const account = yield* Effect.option(vendors.choose(entry))
    return Option.isNone(account)
      ? Option.none()
      : yield* faults.remaining(account.value.accountId, entry.upstreamModel)
  })

  return Effect.fnUntraced(function* (entry: CatalogEntry, request: CreateRequest) {
    const left = yield* faultLeft(entry)
    if (Option.isNone(left)) return Option.none()
    if (Option.isSome(request.idempotency)) {
      const { key } = request.idempotency.value
      const since = idempotencySince(yield* DateTime.now)
      const earlier = yield* tasks.findReplay(request.principal.userId, key, since)
      if (Option.isSome(earlier)) return earlier
    }
    return yield* new Problem({
      code: 5003,
      detail: "The service cannot reach this model now. The operator has been told",
      retryAfterSeconds: Math.ceil(Duration.toSeconds(left.value))
    })
  })
})

/** The operator has to change the configuration first. */
const unservedRetryAfter = Duration.hours(1)

/** Idempotency keys from before this time have expired. */
const idempotencySince = (now: DateTime.Utc) =>
  DateTime.subtractDuration(now, Duration.hours(idempotencyHours))

/** One transaction: idempotency record, task, hold, event and deliveries. */
const makeAccept = Effect.gen(function* () {
  const { concurrentTasksPerKey, concurrentTasksPerUser, taskDeadline } = yield* AppConfig
  const tasks = yield* TaskStore
  const vendors = yield* VendorClient

  return Effect.fnUntraced(function* (
    request: CreateRequest,
    sold: SoldModel,
    taskId: TaskId,
    body: Body
  ) {
    const { path, principal } = request
    const { catalogId, entry } = sold
    const now = yield* DateTime.now
    const task: TaskFacts = {
      id: taskId,
      status: "pending",
      createdAt: now,
      updatedAt: now,
      error: null,
      result: null
    }
    const responseBody = createdBody(task, path.action)
    const price = quote(sold, body)
    const outcome = yield* tasks.accept({
      ...path,
      resultKind: entry.result,
      taskId,
      userId: principal.userId,
      apiKeyId: principal.apiKeyId,
      body: yield* Effect.orDie(decodeJson(body)),
      sandbox: vendors.isSandbox(entry.vendor, entry.adapter),
      price,
      catalogId,
      deadlineAt: DateTime.addDuration(now, taskDeadline),
      traceId: request.traceId,
      now,
      runningMax: concurrentTasksPerKey,
      userRunningMax: concurrentTasksPerUser,
      event: taskEvent(path, taskResult(task, entry.result), now),
      idempotency: Option.map(request.idempotency, (it) => ({
        ...it,
        responseBody,
        since: idempotencySince(now)
      }))
    })
    return { outcome, responseBody, price }
  })
})

/** A running task may have ended by then: the interval that clients are told to poll at. */
const runningRetryAfterSeconds = 2

/**
 * The first response again for a repeated request, 2008 for another
 * one; else the reason of refusal.
 */
const replayOrFail = Effect.fnUntraced(function* (
  request: CreateRequest,
  outcome: Exclude<AcceptOutcome, { readonly _tag: "Accepted" }>
) {
  if (outcome._tag === "BalanceTooLow") {
    return yield* problem(1101, "The available balance is lower than the price: top up the wallet")
  }
  if (outcome._tag === "TooManyRunning") {
    return yield* new Problem({
      code: 1202,
      detail: `This ${outcome.of} has as many unfinished tasks as it may: wait until one has ended`,
      retryAfterSeconds: runningRetryAfterSeconds
    })
  }
  if (!Option.exists(request.idempotency, (hash) => isRepeat(outcome.requestHash, hash))) {
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

/**
 * Replaces inline media by artifact ids: a row holds references, never bytes.
 * docs/reference/models.md#stored-media
 */
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
