import { Effect, Layer } from "effect"
import { HttpServerRequest } from "effect/http"
import { HttpApiMiddleware, HttpApiSecurity } from "effect/http-api"
import { Secrets } from "../../process/Secrets.ts"
import { ApiKeys } from "../../users/ApiKeys.ts"
import { ManageReplays } from "../../users/ManageReplays.ts"
import { authenticateManagement, CurrentCaller } from "../server/Authentication.ts"
import { rescue } from "../server/Problems.ts"
import { RequestBodyLimiter } from "../server/RequestBodyLimiter.ts"
import { manageErrors } from "./ManageErrors.ts"
import { nameOf, replayed } from "./ManageReplay.ts"
import { checkRequest } from "./ManageRequest.ts"

/** Finds the caller of a management endpoint: an API key with scope `manage`, or the operator's token. */
export class ManageGate extends HttpApiMiddleware.Service<
  ManageGate,
  { provides: CurrentCaller }
>()("gateway/http/manage/ManageGate", {
  security: { bearer: HttpApiSecurity.bearer },
  error: manageErrors
}) {
  static readonly layer = Layer.effect(
    ManageGate,
    Effect.gen(function* () {
      const keys = yield* ApiKeys
      const room = yield* RequestBodyLimiter
      const replays = yield* ManageReplays
      const secrets = yield* Secrets
      const caller = authenticateManagement.pipe(
        Effect.provideService(ApiKeys, keys),
        Effect.provideService(Secrets, secrets)
      )
      return {
        bearer: (httpEffect, { endpoint }) =>
          Effect.flatMap(caller, (it) =>
            Effect.flatMap(HttpServerRequest.HttpServerRequest, (request) =>
              room.within(
                request,
                nameOf(it)
              )(
                Effect.andThen(
                  checkRequest(endpoint),
                  replayed(replays, it, Effect.provideService(httpEffect, CurrentCaller, it))
                )
              )
            )
          )
      }
    })
  )
}

/** Stands outside of all else: answers each failure of a management endpoint as a problem. */
export class ManageProblems extends HttpApiMiddleware.Service<ManageProblems>()(
  "gateway/http/ManageProblems"
) {
  static readonly layer = Layer.succeed(ManageProblems, (httpEffect) =>
    Effect.flatMap(HttpServerRequest.HttpServerRequest, (request) => rescue(httpEffect, request))
  )
}
