import { Duration, Effect, Option } from "effect"
import { createHash } from "node:crypto"
import { Catalog } from "../../catalog/Catalog.ts"
import { modelPath } from "../../catalog/CatalogContent.ts"
import { Action } from "../../catalog/PathSegment.ts"
import { AppConfig } from "../../config/Config.ts"
import { cancelTask, createTask, getTask, quote } from "../../contract/McpTools.ts"
import type { TaskId } from "../../domain/Ids.ts"
import { invalid, Problem, problem } from "../../domain/Problem.ts"
import type { FieldFault, ProblemCode } from "../../domain/Problem.ts"
import { Admission, counted } from "../../process/admission/Admission.ts"
import { Router } from "../../tasks/creation/Router.ts"
import type { ModelPath } from "../../tasks/creation/TaskAcceptance.ts"
import { createdId } from "../../tasks/creation/TaskCreation.ts"
import { TaskWatch } from "../../tasks/TaskWatch.ts"
import { refuseOtherModels } from "../../users/AllowedModels.ts"
import { allowsModel } from "../../users/ApiKeys.ts"
import type { Principal } from "../../users/ApiKeys.ts"
import { urlRefused } from "../../webhooks/WebhookUrl.ts"
import { modelsIn } from "../openai/ShapedModel.ts"
import { makeAdmitInference } from "../server/access/Authentication.ts"
import { makeAdmitCreate } from "../server/access/CreateAdmission.ts"
import { requestHashOf } from "../server/IdempotencyKey.ts"
import { RequestTrace } from "../server/listener/RequestTrace.ts"
import { taskUrl } from "../tasks/TaskProblem.ts"
import { modelOf } from "./ModelTools.ts"
import { makeTaskResult, nextOf } from "./TaskResult.ts"
import { bind, MayWait } from "./Tools.ts"

/** The task tools. They use the same services as the HTTP routes, with the same holds, limits and idempotency. */
export const makeTaskTools = Effect.gen(function* () {
  const router = yield* Router
  const admit = yield* makeAdmitInference
  const find = yield* makeFind
  const resultOf = yield* makeTaskResult
  const watch = yield* TaskWatch
  const create = yield* makeCreate
  const target = yield* makeTarget

  return [
    bind(quote, "inference", (args) =>
      Effect.gen(function* () {
        const { principal } = yield* admit(Option.none())
        const path = yield* target(principal, args)
        const { amount } = yield* router
          .quote(path, args.input)
          .pipe(Effect.mapError(faultsOfInput(false)))
        return {
          value: { model: nameOf(path), amount, currency: "credits" as const }
        }
      })
    ),
    bind(createTask, "inference", create),
    bind(getTask, "inference", ({ include_images = true, task_id, wait_seconds = 0 }) =>
      Effect.gen(function* () {
        const { mayStill, task } = yield* find(task_id)
        const wait = Duration.seconds((yield* MayWait) ? wait_seconds : 0)
        const seen = yield* watch.untilEnd(task, wait, mayStill)
        return yield* resultOf(seen, include_images)
      })
    ),
    bind(cancelTask, "inference", ({ task_id }) =>
      Effect.gen(function* () {
        const { principal, task } = yield* find(task_id)
        const cancelled = yield* router.cancel(principal.userId, task, task.id)
        return yield* resultOf(cancelled.task, false)
      })
    )
  ]
})

const nameOf = ({ model, vendor }: ModelPath): string => `${vendor}/${model}`

/** Finds a task of the caller and counts the request against the key's request rate. Fails with 2005. */
export const makeFind = Effect.map(
  makeAdmitInference,
  (admit) => (id: TaskId) =>
    Effect.flatMap(admit(Option.some(id)), ({ mayStill, principal, task }) =>
      Option.isNone(task)
        ? Effect.fail(problem(2005, `There is no task ${id}`))
        : Effect.succeed({ principal, task: task.value, mayStill })
    )
)

/** The path of the named model, if the key may use the model. */
const makeTarget = Effect.gen(function* () {
  const catalog = yield* Catalog
  const router = yield* Router
  return Effect.fnUntraced(function* (principal: Principal, args: Parameters<typeof modelOf>[1]) {
    const { entry, model, vendor } = yield* modelOf(modelsIn(catalog.current()), args)
    const path: ModelPath = { vendor, model, action: entry.action }
    yield* refuseOtherModels(principal, router.modelsAt(path))
    return path
  })
})

/** Prefixes the pointers of body faults with `input`; faults of `metadata` keep their pointers. */
const faultsOfInput =
  (hasMetadata: boolean) =>
  <E>(error: E): E | Problem =>
    error instanceof Problem && error.errors !== undefined
      ? problemOf(
          error.code,
          error.errors.map(({ detail, pointer }) => ({
            pointer:
              hasMetadata && /^#\/metadata(?:\/|$)/u.test(pointer)
                ? pointer
                : pointer.replace("#", "#/input"),
            detail
          }))
        )
      : error

/** 2011 has only one fault, that of the webhook URL. */
const problemOf = (code: ProblemCode, faults: ReadonlyArray<FieldFault>): Problem =>
  code === 2011 && faults[0] !== undefined ? urlRefused(faults[0]) : invalid(faults)

type CreateArguments = (typeof createTask.parametersSchema)["Type"]

const makeCreate = Effect.gen(function* () {
  const router = yield* Router
  const { baseUrl } = yield* AppConfig
  const admitCreate = yield* makeAdmitCreate
  const { creates } = yield* Admission
  const target = yield* makeTarget

  /** The current status of a repeated create's task; if reading it fails, the create still succeeds. */
  const statusOf = (principal: Principal, path: ModelPath, id: TaskId) =>
    Effect.map(Effect.option(router.find(principal.userId, path, id)), (found) =>
      Option.match(found, { onNone: () => "pending" as const, onSome: ({ task }) => task.status })
    )

  /** The path of the request's own task, if it is a repeat and its model has left the catalog since. */
  const pathOfRepeat = Effect.fnUntraced(function* (
    principal: Principal,
    args: CreateArguments,
    body: object,
    refusal: Problem
  ) {
    const slash = args.model.indexOf("/")
    const [vendor, model] = [args.model.slice(0, slash), args.model.slice(slash + 1)]
    if (refusal.code !== 2006 || slash < 0 || !allowsModel(principal, [model])) {
      return yield* refusal
    }
    const actions = args.action === undefined ? Action.literals : [args.action]
    const paths = actions.map((action): ModelPath => ({ vendor, model, action }))
    const repeats = paths.map((path) =>
      purchaseOf(principal, path, body, args.idempotency_key).pipe(
        Effect.flatMap((it) =>
          router.catalogOfRepeat({ principal, idempotency: Option.some(it) }, refusal)
        ),
        Effect.as(path)
      )
    )
    return yield* Effect.firstSuccessOf(repeats)
  })

  return Effect.fnUntraced(function* (args: CreateArguments) {
    const { principal } = yield* admitCreate()
    const { input, metadata } = args
    const body = metadata === undefined ? input : { ...input, metadata }
    const path = yield* Effect.catch(target(principal, args), (refusal) =>
      pathOfRepeat(principal, args, body, refusal)
    )
    if (metadata !== undefined && Object.hasOwn(input, "metadata")) {
      return yield* invalid([{ pointer: "#/input/metadata", detail: "Given twice" }])
    }
    const purchase = yield* purchaseOf(principal, path, body, args.idempotency_key)
    const created = yield* counted(
      creates,
      principal.userId,
      router.create({
        principal,
        path,
        body,
        maxCost: args.max_cost,
        traceId: (yield* RequestTrace).traceId,
        idempotency: Option.some(purchase)
      })
    ).pipe(Effect.mapError(faultsOfInput(metadata !== undefined)))
    const id = yield* createdId(created)
    const status = created.replayed ? yield* statusOf(principal, path, id) : "pending"
    const value = {
      task_id: id,
      model: nameOf(path),
      action: path.action,
      status,
      cost: created.cost,
      sandbox: created.sandbox,
      url: taskUrl(baseUrl, path, id),
      next: nextOf(status),
      balance: created.balance,
      budget_remaining: created.left,
      replayed: created.replayed
    }
    return { value }
  })
})

/**
 * The idempotency key of a create, and its request as if it had been sent to the model's path. Without a key, the
 * request itself is the key, so a client that repeats it in any message buys only once. ADR 0227.
 */
const purchaseOf = (principal: Principal, path: ModelPath, body: object, key?: string) =>
  Effect.map(requestHashOf(`POST ${modelPath(path)}`, body), (hash) => {
    const derived = createHash("sha256").update(`${principal.apiKeyId} `).update(hash.requestHash)
    return { ...hash, key: key ?? `mcp-${derived.digest("hex")}` }
  })
