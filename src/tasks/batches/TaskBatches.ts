import {
  Array as Arr,
  Context,
  DateTime,
  Effect,
  Layer,
  Option,
  Order,
  Result,
  Schema
} from "effect"
import { Artifacts } from "../../artifacts/Artifacts.ts"
import { capFaults } from "../../catalog/FieldFaults.ts"
import * as Credits from "../../domain/Credits.ts"
import { makeTaskBatchId, makeTaskId } from "../../domain/Ids.ts"
import type { TaskBatchId, UserId } from "../../domain/Ids.ts"
import { invalid, Problem, problem } from "../../domain/Problem.ts"
import type { FieldFault, StoreUnavailable } from "../../domain/Problem.ts"
import { FairShares } from "../../domain/shares/FairShares.ts"
import { CreatedTaskBatch } from "../../domain/task/TaskBatch.ts"
import type { TaskBatch } from "../../domain/task/TaskBatch.ts"
import { WorkNotifier } from "../../process/signals/WorkNotifier.ts"
import { refuseOtherModels } from "../../users/AllowedModels.ts"
import { makeUrlTextCheck } from "../../webhooks/WebhookUrl.ts"
import { makeCancelNow } from "../completion/TaskCompletion.ts"
import { priceRequest } from "../creation/Offer.ts"
import type { Offer, PricedRequest } from "../creation/Offer.ts"
import { Offers } from "../creation/Offers.ts"
import { Router } from "../creation/Router.ts"
import { idempotencySince, makeAcceptance } from "../creation/TaskAcceptance.ts"
import type { CreateRequest, ModelPath, PricedCreate } from "../creation/TaskAcceptance.ts"
import type { BatchOutcome } from "../creation/TaskAcceptStore.ts"
import {
  makeCheck,
  refusalOf,
  replayOf,
  replaysWith,
  runningRetryAfterSeconds
} from "../creation/TaskCreation.ts"
import type { Created } from "../creation/TaskCreation.ts"
import { acceptWithInputs } from "../InputMedia.ts"
import { TaskInbox } from "../running/TaskInbox.ts"
import { TaskStore } from "../TaskStore.ts"
import { TaskBatchStore } from "./TaskBatchStore.ts"

/** One create of the batch: a path and its body. */
export interface BatchItem {
  readonly path: ModelPath
  readonly body: unknown
}

export interface BatchRequest extends Pick<
  CreateRequest,
  "principal" | "traceId" | "idempotency" | "maxCost"
> {
  readonly items: Arr.NonEmptyReadonlyArray<BatchItem>
}

/** An accepted batch, or the first response to a repeated request. */
export type CreatedBatch = Omit<Created, "sandbox" | "ending">

type Failure = Problem | StoreUnavailable

/** Batches: one request creates several tasks, and all are accepted or none. docs/reference/batches.md, ADR 0292. */
export class TaskBatches extends Context.Service<
  TaskBatches,
  {
    /** Fails as a single create does. A 2001 lists every fault of every item. */
    readonly create: (request: BatchRequest) => Effect.Effect<CreatedBatch, Failure>
    /** Fails with 2005. */
    readonly get: (userId: UserId, id: TaskBatchId) => Effect.Effect<TaskBatch, Failure>
    readonly list: TaskBatchStore["Service"]["list"]
    /** A page of the tasks, in the order of the request. */
    readonly tasks: TaskBatchStore["Service"]["tasks"]
    /** Cancels every task that has not ended. Fails with 2005, or with 2010 if all tasks have ended. */
    readonly cancel: (userId: UserId, id: TaskBatchId) => Effect.Effect<TaskBatch, Failure>
  }
>()("gateway/tasks/TaskBatches") {
  static readonly layer = Layer.effect(
    TaskBatches,
    Effect.gen(function* () {
      const store = yield* TaskBatchStore
      const accept = yield* makeAccept
      const cancelNow = yield* makeCancelNow
      const price = yield* makePrice
      const { replayOr } = replaysWith(yield* TaskStore)
      const places = new FairShares(acceptsAtOnce)

      const get = Effect.fnUntraced(function* (userId: UserId, id: TaskBatchId) {
        const found = yield* store.find(userId, id)
        if (Option.isNone(found)) return yield* noBatch(id)
        return found.value
      })

      return TaskBatches.of({
        create: Effect.fn("TaskBatches.create")(function* (request) {
          const within = places.within(request.principal.userId)
          const created = yield* within(
            Effect.flatMap(price(request), (items) => accept(request, items))
          ).pipe(
            Effect.catchTag("ShareExhausted", () => Effect.fail(tooManyBatches)),
            Effect.result
          )
          if (Result.isSuccess(created)) return created.success
          const refusal = created.failure
          return yield* refusal._tag === "Problem" ? replayOr(request, refusal) : refusal
        }),
        get,
        list: store.list,
        tasks: store.tasks,
        cancel: Effect.fn("TaskBatches.cancel")(function* (userId, id) {
          yield* get(userId, id)
          const tasks = yield* store.unfinished(id)
          const ended = yield* Effect.forEach(tasks, (task) => cancelNow(task), {
            concurrency: cancelsAtOnce
          })
          if (!ended.includes(true)) return yield* problem(2010, `Batch ${id} has already ended`)
          return yield* get(userId, id)
        })
      })
    })
  )
}

/**
 * A batch is a transaction of thousands of rows. These limits leave most of the connection pool free and allow each
 * user one batch at a time.
 */
const acceptsAtOnce = { capacity: 2, aloneMax: 0.5, perCallerMax: 1, queueMax: 4 }

/** The number of cancels that share a commit. */
const cancelsAtOnce = 128

export const noBatch = (id: string): Problem =>
  problem(2005, `There is no batch ${id.slice(0, 60)}`)

const tooManyBatches = new Problem({
  code: 1202,
  detail: "Too many batches of this user are waiting to be accepted: send one after another",
  retryAfterSeconds: runningRetryAfterSeconds
})

interface PricedItem {
  readonly path: ModelPath
  readonly offer: Offer
  readonly priced: PricedRequest
}

type Items = Arr.NonEmptyReadonlyArray<PricedItem>

/** Decodes and prices all items. Fails with the faults of all items together. */
const makePrice = Effect.gen(function* () {
  const check = yield* makeCheck
  const checkUrl = yield* makeUrlTextCheck
  const offers = yield* Offers
  const router = yield* Router

  const priceItem = Effect.fnUntraced(function* ({ body, path }: BatchItem) {
    const offer = yield* offers.at(path)
    return { path, offer, priced: yield* priceRequest(offer, body, checkUrl) } satisfies PricedItem
  })

  return Effect.fnUntraced(function* ({ items, maxCost, principal }: BatchRequest) {
    const models = new Set(items.flatMap(({ path }) => router.modelsAt(path)))
    yield* refuseOtherModels(principal, [...models])
    const faults: Array<FieldFault> = []
    const found: Array<PricedItem> = []
    for (const [n, item] of items.entries()) {
      const priced = yield* Effect.result(priceItem(item))
      if (Result.isSuccess(priced)) found.push(priced.success)
      else faults.push(...faultsOfItem(n, priced.failure))
      // Lets other requests run between items
      yield* Effect.yieldNow
    }
    if (Arr.isReadonlyArrayNonEmpty(faults)) return yield* invalid(capFaults(faults))
    if (!Arr.isReadonlyArrayNonEmpty(found)) return yield* Effect.die("a batch has a task")
    for (const { priced } of found) yield* check(priced, { maxCost: undefined })
    const total = totalOf(found)
    if (maxCost !== undefined && total > maxCost) {
      return yield* problem(1103, `These tasks cost ${Credits.formatExact(total)} credits`)
    }
    return found
  })
})

const totalOf = (items: ReadonlyArray<Pick<PricedCreate, "priced">>): Credits.Credits =>
  Credits.make(items.reduce((sum, { priced }) => sum + priced.most, 0n))

const faultsOfItem = (n: number, { detail, errors }: Problem): ReadonlyArray<FieldFault> =>
  errors === undefined
    ? [{ pointer: `#/tasks/${n}/model`, detail }]
    : errors.map((fault) => ({
        pointer: `#/tasks/${n}/body${fault.pointer.slice(1)}`,
        detail: fault.detail
      }))

/** Stores the inline media of all items and accepts their tasks in one transaction. */
const makeAccept = Effect.gen(function* () {
  const artifacts = yield* Artifacts
  const commit = yield* makeCommit
  const inbox = yield* TaskInbox
  const notifier = yield* WorkNotifier

  return Effect.fnUntraced(function* (request: BatchRequest, items: Items) {
    const now = yield* DateTime.now
    const creates = createsOf(request, items, now)
    const { cost, outcome, responseBody } = yield* acceptWithInputs(
      artifacts,
      request.principal.userId,
      creates,
      (stored) => commit(request, stored, now)
    )
    if (outcome._tag === "Replayed") return yield* replayOf(request.idempotency, outcome)
    if (outcome._tag !== "Accepted") return yield* refusedAt(items, outcome)
    // One hint is enough to wake the other processes
    yield* notifier.offerTask(creates[0].taskId)
    inbox.wake()
    yield* notifier.notifyEndpoints(outcome.endpoints)
    const { balance, left } = outcome
    return { body: responseBody, cost, balance, left, replayed: false } satisfies CreatedBatch
  })
})

/** The creates of a batch. Task ids ascend in the order of the request. */
const createsOf = (
  { principal, traceId }: BatchRequest,
  items: Items,
  now: DateTime.Utc
): Arr.NonEmptyReadonlyArray<PricedCreate> => {
  const millis = DateTime.toEpochMillis(now)
  const ids = Arr.sort(
    Arr.map(items, () => makeTaskId(millis)),
    Order.String
  )
  return Arr.zipWith(items, ids, ({ offer, path, priced }, taskId) => ({
    request: { principal, path, traceId },
    offer,
    taskId,
    priced
  }))
}

/** One transaction for all tasks. The idempotency record is stored with the first one. */
const makeCommit = Effect.gen(function* () {
  const acceptanceOf = yield* makeAcceptance
  const store = yield* TaskBatchStore
  return Effect.fnUntraced(function* (
    { idempotency }: BatchRequest,
    creates: ReadonlyArray<PricedCreate>,
    now: DateTime.Utc
  ) {
    const id = makeTaskBatchId(DateTime.toEpochMillis(now))
    const cost = totalOf(creates)
    const responseBody = yield* createdBody(id, creates, cost, now)
    const acceptances = yield* Effect.forEach(creates, (create, n) =>
      Effect.map(acceptanceOf(create, now), ({ acceptance }) => ({
        ...acceptance,
        batchId: id,
        idempotency: Option.map(n === 0 ? idempotency : Option.none(), (it) => ({
          ...it,
          responseBody,
          since: idempotencySince(now)
        }))
      }))
    )
    return { outcome: yield* store.accept(id, acceptances), responseBody, cost }
  })
})

const encodeCreated = Schema.encodeEffect(Schema.fromJsonString(CreatedTaskBatch))

const createdBody = (
  id: TaskBatchId,
  creates: ReadonlyArray<PricedCreate>,
  cost: Credits.Credits,
  now: DateTime.Utc
): Effect.Effect<string> => {
  const total = creates.length
  return encodeCreated({
    id,
    status: "in_progress",
    counts: { total, unfinished: total, completed: 0, failed: 0 },
    receipt: { held: cost, captured: Credits.zero, released: Credits.zero, currency: "credits" },
    created_at: now,
    ended_at: null,
    task_ids: creates.map(({ taskId }) => taskId)
  }).pipe(Effect.orDie)
}

/** The problem to return when nothing was accepted. */
const refusedAt = (
  items: Items,
  outcome: Exclude<BatchOutcome, { readonly _tag: "Accepted" | "Replayed" }>
): Effect.Effect<never, Problem> =>
  outcome._tag === "TooManyRunning"
    ? Effect.fail(
        new Problem({
          code: 1202,
          detail: `This ${outcome.of} may begin ${outcome.n} more tasks now: wait, or send fewer`,
          retryAfterSeconds: runningRetryAfterSeconds
        })
      )
    : Effect.fail(refusalOf(items[outcome.n]?.path.model ?? "", outcome))
