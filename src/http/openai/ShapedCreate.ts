import { Effect } from "effect"
import { HttpServerRequest } from "effect/http"
import { Catalog } from "../../catalog/Catalog.ts"
import type { CatalogEntry } from "../../catalog/CatalogEntry.ts"
import { AppConfig } from "../../config/Config.ts"
import { invalid } from "../../domain/Problem.ts"
import type { FieldFault, Problem } from "../../domain/Problem.ts"
import { Router } from "../../tasks/Router.ts"
import { allowsModel, modelNotAllowed } from "../../users/ApiKeys.ts"
import type { Principal } from "../../users/ApiKeys.ts"
import { maxCostHeader } from "../server/MaxCost.ts"
import { RequestBodyLimiter } from "../server/RequestBodyLimiter.ts"
import { createdId, makeAccept } from "../tasks/CreatedTask.ts"
import { readShapedBody } from "./ShapedBody.ts"

/** A request in OpenAI's shape as the body of its model, with what is wrong with it. */
export interface ShapedRequest {
  readonly entry: CatalogEntry
  readonly body: Readonly<Record<string, unknown>>
  readonly faults: ReadonlyArray<FieldFault>
}

type Translate<Request extends ShapedRequest> = (
  models: ReadonlyArray<CatalogEntry>,
  fields: Readonly<Record<string, unknown>>
) => Effect.Effect<Request, Problem>

/** Reads a request, translates it, and creates its task as every create does. */
export const makeShapedCreate = Effect.gen(function* () {
  const bodies = yield* RequestBodyLimiter
  const catalog = yield* Catalog
  const router = yield* Router
  const { serviceName } = yield* AppConfig
  const accept = makeAccept(router, maxCostHeader(serviceName))

  /** Faults of the shape and of the model's own body together. */
  const check = Effect.fnUntraced(function* ({ body, entry, faults }: ShapedRequest) {
    if (faults.length === 0) return
    const more = yield* Effect.match(router.quote(entry, body), {
      onFailure: (problem: Problem) => problem.errors ?? [],
      onSuccess: () => []
    })
    return yield* invalid([...faults, ...more])
  })

  const create = Effect.fnUntraced(function* <Request extends ShapedRequest>(
    principal: Principal,
    translate: Translate<Request>
  ) {
    const request = yield* HttpServerRequest.HttpServerRequest
    const { fields, given } = yield* readShapedBody
    const asked = yield* translate(catalog.current().all, fields)
    const { action, model, vendor } = asked.entry
    if (!allowsModel(principal, [model])) return yield* modelNotAllowed(model)
    yield* check(asked)
    const path = { vendor, model, action }
    const created = yield* accept(request, principal, path, given, asked.body)
    return { created, path, id: yield* createdId(created), asked }
  })

  return <Request extends ShapedRequest>(principal: Principal, translate: Translate<Request>) =>
    Effect.flatMap(HttpServerRequest.HttpServerRequest, (request) =>
      bodies.within(
        request,
        principal.userId
      )(
        // A request keeps the body that was read from it, and is in memory until its response
        Effect.suspend(() =>
          Effect.provideService(
            create(principal, translate),
            HttpServerRequest.HttpServerRequest,
            request.modify({})
          )
        )
      )
    )
})
