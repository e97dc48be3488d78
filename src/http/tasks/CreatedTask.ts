import { Effect, Option } from "effect"
import type { Duration } from "effect"
import type { HttpServerRequest } from "effect/http"
import { nameOf } from "../../catalog/Alias.ts"
import type { Ending } from "../../catalog/PriceRow.ts"
import * as Credits from "../../domain/Credits.ts"
import type { TaskId, UserId } from "../../domain/Ids.ts"
import { modelAt, skippedOf, skippedText } from "../../domain/task/Candidate.ts"
import { isTerminal } from "../../domain/task/Task.ts"
import { counted } from "../../process/admission/Admission.ts"
import type { AdmissionLimiter } from "../../process/admission/AdmissionLimiter.ts"
import { Router } from "../../tasks/creation/Router.ts"
import type { FoundTask } from "../../tasks/creation/Router.ts"
import type { ModelPath } from "../../tasks/creation/TaskAcceptance.ts"
import type { Created } from "../../tasks/creation/TaskCreation.ts"
import { TaskWatch } from "../../tasks/TaskWatch.ts"
import type { MayStill } from "../../tasks/TaskWatch.ts"
import type { AdmittedCaller } from "../server/access/Authentication.ts"
import type { JsonBody } from "../server/bodies/JsonBody.ts"
import { readIdempotencyKey } from "../server/IdempotencyKey.ts"
import { RequestTrace } from "../server/listener/RequestTrace.ts"
import { readMaxCost } from "../server/MaxCost.ts"

/** What creates in all formats share. */

export type TaskView = FoundTask["task"]

/** The name of one of the gateway's own headers. */
export type Header = (name: string) => string

export const headerOf =
  (serviceName: string): Header =>
  (name) =>
    `x-${serviceName}-${name}`.toLowerCase()

/**
 * Creates one or several tasks with the same body. `given` is the request as its client sent it, which identifies
 * repeats; `body` has the model's fields.
 */
export const makeAccept = (
  router: Router["Service"],
  creates: AdmissionLimiter,
  maxCostName: string
) =>
  Effect.fnUntraced(function* (
    request: HttpServerRequest.HttpServerRequest,
    { isSignedIn, principal }: AdmittedCaller,
    path: ModelPath,
    given: JsonBody,
    body: unknown = given.value,
    count = 1
  ) {
    yield* isSignedIn
    const created = router.create({
      principal,
      path,
      maxCost: yield* readMaxCost(request.headers, maxCostName),
      body,
      count,
      traceId: (yield* RequestTrace).traceId,
      idempotency: yield* readIdempotencyKey(request, given)
    })
    return yield* counted(creates, principal.userId, created)
  })

/** The created task, if it ends in time. The task exists, so a failure while waiting must not become the response. */
export const makeEndOf = Effect.gen(function* () {
  const router = yield* Router
  const watch = yield* TaskWatch
  return Effect.fnUntraced(
    function* (
      { mayStill, userId }: { readonly userId: UserId; readonly mayStill: MayStill },
      path: ModelPath,
      id: TaskId,
      wait: Duration.Duration
    ) {
      const { task } = yield* router.find(userId, path, id)
      return yield* watch.untilEnd(task, wait, mayStill)
    },
    Effect.sandbox,
    Effect.option,
    Effect.map(Option.filter(({ status }) => isTerminal(status)))
  )
})

/** Headers of the response to a create, without the cost. docs/reference/tasks.md#response-headers */
export const makeCreatedHeaders = (header: Header) => {
  const [balance, left, sandbox] = [
    header("balance"),
    header("budget-remaining"),
    header("sandbox")
  ]
  return (created: Created): Record<string, string> => ({
    [balance]: Credits.format(created.balance),
    ...endingHeaders(created.ending),
    ...(created.sandbox ? { [sandbox]: "true" } : {}),
    ...(created.left === null ? {} : { [left]: Credits.format(created.left) }),
    ...(created.replayed ? { "idempotency-replayed": "true" } : {})
  })
}

/** The headers `Deprecation` (RFC 9745) and `Sunset` (RFC 8594). docs/catalog.md#models-that-end */
export const endingHeaders = (ending: Ending | undefined): Record<string, string> =>
  ending === undefined ? {} : { deprecation: ending.deprecation, sunset: ending.sunset }

/** The held amount while the task is unfinished, then the captured amount. docs/reference/tasks.md#response-headers */
export const costOf = (task: TaskView): Credits.Credits =>
  task.captured ?? (task.status === "failed" ? Credits.zero : task.price)

/**
 * For the task of an alias: its current model, once a submit has begun, and why other models were skipped.
 * docs/reference/aliases.md#who-did-it
 */
export const makeModelHeaders = (header: Header) => {
  const [model, skipped] = [header("model"), header("skipped")]
  return (task: TaskView): Record<string, string> => {
    if (task.candidates === null) return {}
    const others = skippedText(skippedOf(task))
    return {
      ...(task.startedAt === null ? {} : { [model]: nameOf(modelAt(task)) }),
      ...(others === "" ? {} : { [skipped]: others })
    }
  }
}
