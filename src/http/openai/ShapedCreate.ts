import { Effect } from "effect"
import type { Array as Arr } from "effect"
import { HttpServerRequest } from "effect/http"
import { Catalog } from "../../catalog/Catalog.ts"
import { AppConfig } from "../../config/Config.ts"
import type { TaskId } from "../../domain/Ids.ts"
import { invalid } from "../../domain/Problem.ts"
import type { FieldFault, Problem } from "../../domain/Problem.ts"
import { Admission } from "../../process/admission/Admission.ts"
import { Router } from "../../tasks/creation/Router.ts"
import type { ModelPath } from "../../tasks/creation/TaskAcceptance.ts"
import { createdIds } from "../../tasks/creation/TaskCreation.ts"
import type { Created } from "../../tasks/creation/TaskCreation.ts"
import { refuseOtherModels } from "../../users/AllowedModels.ts"
import type { Principal } from "../../users/ApiKeys.ts"
import type { AdmittedCaller } from "../server/access/Authentication.ts"
import type { JsonBody } from "../server/bodies/JsonBody.ts"
import { RequestBodyLimiter } from "../server/bodies/RequestBodyLimiter.ts"
import { readIdempotencyKey } from "../server/IdempotencyKey.ts"
import { maxCostHeader } from "../server/MaxCost.ts"
import { makeAccept } from "../tasks/CreatedTask.ts"
import { readShapedBody } from "./ShapedBody.ts"
import { modelsIn } from "./ShapedModel.ts"
import type { ShapedModel } from "./ShapedModel.ts"

/** A request in OpenAI's format, translated to the body of its model, with its faults. */
export interface ShapedRequest {
  readonly model: ShapedModel
  readonly body: Readonly<Record<string, unknown>>
  /** The number of tasks with this body. Absent: one. */
  readonly count?: number
  readonly faults: ReadonlyArray<FieldFault>
}

type Translate<Request extends ShapedRequest> = (
  models: ReadonlyArray<ShapedModel>,
  fields: Readonly<Record<string, unknown>>
) => Effect.Effect<Request, Problem>

export interface ShapedTasks<Request extends ShapedRequest> {
  readonly created: Created
  readonly path: ModelPath
  readonly ids: Arr.NonEmptyReadonlyArray<TaskId>
  readonly asked: Request
}

/** Reads a request, translates it, and creates its tasks like every other create. */
export const makeShapedCreate = Effect.gen(function* () {
  const bodies = yield* RequestBodyLimiter
  const catalog = yield* Catalog
  const router = yield* Router
  const { serviceName } = yield* AppConfig
  const { creates } = yield* Admission
  const accept = makeAccept(router, creates, maxCostHeader(serviceName))

  /** Reports the faults of the OpenAI format and of the model's own body together. */
  const check = Effect.fnUntraced(function* (path: ModelPath, { body, faults }: ShapedRequest) {
    if (faults.length === 0) return
    const more = yield* Effect.match(router.quote(path, body), {
      onFailure: (problem: Problem) => problem.errors ?? [],
      onSuccess: () => []
    })
    return yield* invalid([...faults, ...more])
  })

  /** The models of the request's own task, if it is a repeat and its model has left the catalog since. */
  const modelsOfRepeat = Effect.fnUntraced(function* (
    request: HttpServerRequest.HttpServerRequest,
    principal: Principal,
    given: JsonBody,
    refusal: Problem
  ) {
    if (refusal.code !== 2006) return yield* refusal
    const idempotency = yield* readIdempotencyKey(request, given)
    return modelsIn(yield* router.catalogOfRepeat({ principal, idempotency }, refusal))
  })

  const create = Effect.fnUntraced(function* <Request extends ShapedRequest>(
    caller: AdmittedCaller,
    translate: Translate<Request>
  ) {
    const { principal } = caller
    const request = yield* HttpServerRequest.HttpServerRequest
    const { fields, given } = yield* readShapedBody
    const asked = yield* Effect.catch(translate(modelsIn(catalog.current()), fields), (refusal) =>
      Effect.flatMap(modelsOfRepeat(request, principal, given, refusal), (models) =>
        translate(models, fields)
      )
    )
    const { entry, model, vendor } = asked.model
    const path = { vendor, model, action: entry.action }
    yield* refuseOtherModels(principal, router.modelsAt(path))
    yield* check(path, asked)
    const created = yield* accept(request, caller, path, given, asked.body, asked.count)
    const ids = yield* createdIds(created)
    return { created, path, ids, asked } satisfies ShapedTasks<Request>
  })

  return <Request extends ShapedRequest>(caller: AdmittedCaller, translate: Translate<Request>) =>
    Effect.flatMap(HttpServerRequest.HttpServerRequest, (request) =>
      bodies.within(
        request,
        caller.principal.userId
      )(
        // Copied, because a request keeps the body that was read from it and stays in memory until its response
        Effect.suspend(() =>
          Effect.provideService(
            create(caller, translate),
            HttpServerRequest.HttpServerRequest,
            request.modify({})
          )
        )
      )
    )
})
