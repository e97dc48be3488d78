import {
  Array as Arr,
  Context,
  DateTime,
  Duration,
  Effect,
  Layer,
  Option,
  Result,
  Schema
} from "effect"
import { Artifacts } from "../../artifacts/Artifacts.ts"
import type { TaskModel } from "../../catalog/CatalogEntry.ts"
import { endingOf } from "../../catalog/PriceRow.ts"
import type { Ending } from "../../catalog/PriceRow.ts"
import { bounded, formatExact } from "../../domain/Credits.ts"
import type { Credits } from "../../domain/Credits.ts"
import { makeTaskId, TaskId } from "../../domain/Ids.ts"
import { Problem, problem } from "../../domain/Problem.ts"
import type { StoreUnavailable } from "../../domain/Problem.ts"
import { isRepeat } from "../../domain/RequestHash.ts"
import { spendLimitProblem } from "../../domain/SpendLimit.ts"
import { WorkNotifier } from "../../process/signals/WorkNotifier.ts"
import { keyEnded, modelNotAllowed } from "../../users/ApiKeys.ts"
import { VendorClient } from "../../vendors/VendorClient.ts"
import { makeUrlCheck } from "../../webhooks/WebhookUrl.ts"
import { acceptWithInputs } from "../InputMedia.ts"
import { TaskInbox } from "../running/TaskInbox.ts"
import { OperatorFaults } from "../submission/OperatorFaults.ts"
import { TaskStore } from "../TaskStore.ts"
import type { AcceptOutcome, Replayed } from "../TaskStore.ts"
import { priceRequest } from "./Offer.ts"
import type { Offer, PricedRequest } from "./Offer.ts"
import { idempotencySince, makeAccept } from "./TaskAcceptance.ts"
import type { AcceptedOffer, AcceptRequest, CreateRequest } from "./TaskAcceptance.ts"

/** An accepted task, several tasks with one body, or the first response to a repeated request. */
export interface Created {
  /** JSON text of the 202. */
  readonly body: string
  readonly cost: Credits
  readonly balance: Credits
  /**
   * Credits left of the API key's spend limit. `null`: the key has no limit, or this is the response to a repeated
   * request.
   */
  readonly left: Credits | null
  readonly sandbox: boolean
  /** When the model will be removed, if that is announced. */
  readonly ending: Ending | undefined
  readonly replayed: boolean
}

/** A request that has already been priced. */
export interface PricedOrder {
  readonly request: AcceptRequest
  readonly offer: AcceptedOffer
  readonly priced: PricedRequest
  readonly ending: Ending | undefined
}

const CreatedBody = Schema.Struct({ task_info: Schema.Struct({ id: TaskId }) })

const decodeCreated = Schema.decodeUnknownEffect(
  Schema.fromJsonString(
    Schema.Union([Schema.Struct({ tasks: Schema.NonEmptyArray(CreatedBody) }), CreatedBody])
  )
)

/** The ids in the body of the 202. */
export const createdIds = ({
  body
}: Pick<Created, "body">): Effect.Effect<Arr.NonEmptyReadonlyArray<TaskId>> =>
  decodeCreated(body).pipe(
    Effect.map((created) => ("tasks" in created ? created.tasks : Arr.of(created))),
    Effect.map(Arr.map(({ task_info }) => task_info.id)),
    Effect.orDie
  )

/** The id of the task, or of the first of several. */
export const createdId = (created: Pick<Created, "body">): Effect.Effect<TaskId> =>
  Effect.map(createdIds(created), ([id]) => id)

/** Creates a task: decodes and prices the body, stores its media, commits, notifies. docs/reference/tasks.md#create */
export class TaskCreation extends Context.Service<
  TaskCreation,
  {
    /**
     * Fails with 1003 or 1004 (the key changed after authentication), 2001 (body), 2011 (webhook URL), 1101 (balance),
     * 1102 (spend limit of the key), 1103 (maximum cost of the request), 1202 (running tasks), 2008 (idempotency key)
     * or 5003 (operator fault). Nothing is stored then. If the path offers nothing, fails as `offered` does.
     */
    readonly create: (
      offered: Effect.Effect<Offer, Problem>,
      request: CreateRequest
    ) => Effect.Effect<Created, Problem | StoreUnavailable>
    /** The same for a request that has already been priced, such as a background response. */
    readonly createPriced: (
      order: PricedOrder
    ) => Effect.Effect<Created, Problem | StoreUnavailable>
  }
>()("gateway/tasks/TaskCreation") {
  static readonly layer = Layer.effect(
    TaskCreation,
    Effect.gen(function* () {
      const notifier = yield* WorkNotifier
      const inbox = yield* TaskInbox
      const acceptStored = yield* makeAcceptStored
      const check = yield* makeCheck
      const checkUrl = yield* makeUrlCheck
      const { replayForRemovedModel, replayOr } = replaysWith(yield* TaskStore)

      const accept = Effect.fnUntraced(function* (
        request: AcceptRequest,
        offer: AcceptedOffer,
        ending: Ending | undefined,
        pricing: Effect.Effect<PricedRequest, Problem>
      ) {
        const { sandbox } = offer
        const found = yield* pricing.pipe(
          Effect.tap((priced) => check(priced, request)),
          Effect.result
        )
        if (Result.isFailure(found)) {
          return { ...(yield* replayOr(request, found.failure)), sandbox, ending }
        }
        const priced = found.success
        const now = DateTime.toEpochMillis(yield* DateTime.now)
        const taskIds = Arr.makeBy(request.count ?? 1, () => makeTaskId(now))
        const accepting = yield* Effect.result(acceptStored(request, offer, taskIds, priced))
        if (Result.isFailure(accepting)) {
          if (accepting.failure._tag === "StoreUnavailable") return yield* accepting.failure
          return { ...(yield* replayOr(request, accepting.failure)), sandbox, ending }
        }
        const { accepted, outcome, responseBody } = accepting.success
        if (outcome._tag !== "Accepted") {
          return { ...(yield* replayOrFail(request, outcome)), sandbox, ending }
        }
        for (const { id, owned, queue } of accepted) {
          if (owned !== undefined) continue
          yield* notifier.offerTask(id)
          if (inbox.capacity(queue) > 0) inbox.wake()
        }
        yield* notifier.notifyEndpoints(outcome.endpoints)
        return {
          body: responseBody,
          cost: costOfAll(priced, request),
          balance: outcome.balance,
          left: outcome.left,
          sandbox,
          ending,
          replayed: false
        }
      })

      const create = Effect.fnUntraced(function* (
        offered: Effect.Effect<Offer, Problem>,
        request: CreateRequest
      ) {
        const sold = yield* Effect.result(offered)
        if (Result.isFailure(sold)) return yield* replayForRemovedModel(request, sold.failure)
        const offer = sold.success
        // An alias stays when one of its models is removed
        const ending = offer.alias === undefined ? endingOf(offer.models[0].entry) : undefined
        return yield* accept(request, offer, ending, priceRequest(offer, request.body, checkUrl))
      })

      return TaskCreation.of({
        create,
        createPriced: ({ ending, offer, priced, request }) =>
          accept(request, offer, ending, Effect.succeed(priced))
      })
    })
  )
}

/** The total hold for all tasks of a request. */
const costOfAll = ({ most }: PricedRequest, { count = 1 }: Pick<CreateRequest, "count">): Credits =>
  bounded(most * BigInt(count))

/** Stores the inline media and accepts the tasks. Fails with 1202 if the user has too many stored inputs. */
const makeAcceptStored = Effect.gen(function* () {
  const artifacts = yield* Artifacts
  const inbox = yield* TaskInbox
  const accept = yield* makeAccept
  return (
    request: AcceptRequest,
    offer: AcceptedOffer,
    taskIds: Arr.NonEmptyReadonlyArray<TaskId>,
    priced: PricedRequest
  ) => {
    const creates = Arr.map(taskIds, (taskId) => ({ request, offer, taskId, priced }))
    return acceptWithInputs(artifacts, request.principal.userId, creates, (stored) =>
      Effect.tap(accept(request, stored), ({ accepted, outcome }) =>
        Effect.sync(() => {
          if (outcome._tag !== "Accepted") return
          for (const { owned } of accepted) if (owned !== undefined) inbox.start(owned)
        })
      )
    )
  }
})

/**
 * Fails with 5003 while an operator fault is open for the model or no account serves it (ADR 0083). For an alias, fails
 * only if this is true of all its models. Fails with 1103 if the price exceeds the request's maximum.
 */
export const makeCheck = Effect.gen(function* () {
  const faults = yield* OperatorFaults
  const vendors = yield* VendorClient

  /** How long creates of the model are still refused. */
  const faultLeft = Effect.fnUntraced(function* (entry: TaskModel) {
    if (!vendors.isServed(entry)) return Option.some(unservedRetryAfter)
    if (!faults.hasOpen()) return Option.none()
    const account = yield* Effect.option(vendors.choose(entry))
    return Option.isNone(account)
      ? Option.none()
      : yield* faults.remaining(account.value.accountId, entry.upstreamModel)
  })

  return Effect.fnUntraced(function* (
    priced: PricedRequest,
    request: Pick<CreateRequest, "count" | "maxCost">
  ) {
    const { models } = priced
    const left = yield* Effect.forEach(models, ({ entry }) => faultLeft(entry))
    const open = left.flatMap(Option.toArray)
    if (open.length === left.length) {
      const soonest = Math.min(...open.map(Duration.toSeconds))
      return yield* new Problem({
        code: 5003,
        detail: "The service cannot reach this model now. The operator has been notified",
        retryAfterSeconds: Math.ceil(soonest)
      })
    }
    const cost = costOfAll(priced, request)
    if (request.maxCost !== undefined && cost > request.maxCost) {
      const atMost = models.length > 1 ? "up to " : ""
      const { count = 1 } = request
      const what = count > 1 ? `These ${count} tasks cost` : "This task costs"
      return yield* problem(1103, `${what} ${atMost}${formatExact(cost)} credits`)
    }
  })
})

type Repeatable = Pick<AcceptRequest, "idempotency" | "principal">

/** Checks whether a request that is about to be refused repeats an accepted one. */
export const replaysWith = (tasks: TaskStore["Service"]) => {
  const replayOr = Effect.fnUntraced(function* (request: Repeatable, refusal: Problem) {
    if (Option.isNone(request.idempotency)) return yield* refusal
    const { key } = request.idempotency.value
    const now = yield* DateTime.now
    const since = idempotencySince(now)
    const earlier = yield* tasks.findReplay({ ...request.principal, key, since, now })
    return yield* Option.isNone(earlier) ? refusal : replayOf(request.idempotency, earlier.value)
  })
  return {
    replayOr,
    /** For a model that has left the catalog or has no current price. */
    replayForRemovedModel: Effect.fnUntraced(function* (request: AcceptRequest, refusal: Problem) {
      const earlier = yield* replayOr(request, refusal)
      const task = yield* tasks.view(yield* createdId(earlier))
      return {
        ...earlier,
        sandbox: Option.exists(task, ({ sandbox }) => sandbox),
        ending: undefined
      }
    })
  }
}

/** Long, because the operator has to change the configuration first. */
const unservedRetryAfter = Duration.hours(1)

/** A running task may have ended by then. The same interval as for polling by clients. */
export const runningRetryAfterSeconds = 2

type Refused = Exclude<AcceptOutcome, { readonly _tag: "Accepted" | "Replayed" }>

/** The problem to return when a task was not accepted. */
export const refusalOf = (model: string, outcome: Refused): Problem => {
  switch (outcome._tag) {
    case "BalanceTooLow":
      return problem(1101, "The available balance is lower than the price: top up the wallet")
    case "KeyEnded":
      return keyEnded[outcome.how]
    case "FileGone":
      return problem(2005, "The file was deleted or has expired while the batch was created")
    case "ModelNotAllowed":
      return modelNotAllowed(model)
    case "OverSpendLimit":
      return spendLimitProblem(outcome)
    case "TooManyRunning":
      return new Problem({
        code: 1202,
        detail: `This ${outcome.of} has the maximum number of unfinished tasks: wait until one has ended`,
        retryAfterSeconds: runningRetryAfterSeconds
      })
  }
}

/** The first response if the request is a repeat of it; 2008 if the request differs. */
export const replayOf = (idempotency: AcceptRequest["idempotency"], earlier: Replayed) => {
  const { balance, body, cost, requestHash } = earlier
  return Option.exists(idempotency, (hash) => isRepeat(requestHash, hash))
    ? Effect.succeed({ body, cost, balance, left: null, replayed: true })
    : Effect.fail(problem(2008, "This Idempotency-Key was used before with another request"))
}

const replayOrFail = ({ idempotency, path }: AcceptRequest, outcome: Refused | Replayed) =>
  outcome._tag === "Replayed"
    ? replayOf(idempotency, outcome)
    : Effect.fail(refusalOf(path.model, outcome))
