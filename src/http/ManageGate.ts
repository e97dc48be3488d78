import { Effect, Layer } from "effect"
import { HttpServerRequest } from "effect/http"
import type { HttpServerResponse } from "effect/http"
import { HttpApiMiddleware, HttpApiSecurity } from "effect/http-api"
import { problem } from "../domain/Problem.ts"
import { ApiKeys } from "../services/ApiKeys.ts"
import { Replays } from "../services/Replays.ts"
import { Secrets } from "../services/Secrets.ts"
import { authenticateManagement, CurrentCaller } from "./Authentication.ts"
import { manageErrors } from "./ManageErrors.ts"
import { replayed } from "./ManageReplay.ts"
import { pathOf, rescue, toResponse } from "./Problems.ts"

/** Finds the caller of a management endpoint: an API key with scope `manage`, or the operator's token. */
export class ManageGate extends HttpApiMiddleware.Service<
  ManageGate,
  { provides: CurrentCaller }
>()("gateway/http/ManageGate", {
  security: { bearer: HttpApiSecurity.bearer },
  error: manageErrors
}) {
  static readonly layer = Layer.effect(
    ManageGate,
    Effect.gen(function* () {
      const keys = yield* ApiKeys
      const replays = yield* Replays
      const secrets = yield* Secrets
      const caller = authenticateManagement.pipe(
        Effect.provideService(ApiKeys, keys),
        Effect.provideService(Secrets, secrets)
      )
      return {
        bearer: (httpEffect) =>
          Effect.flatMap(caller, (it) =>
            replayed(replays, it, Effect.provideService(httpEffect, CurrentCaller, it))
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
    Effect.flatMap(HttpServerRequest.HttpServerRequest, (request) =>
      Effect.map(rescue(httpEffect, request), (response) => jsonOnly(response, pathOf(request)))
    )
  )
}

/** HttpApi answers a body of another type with 415 in plain text. */
const jsonOnly = (
  response: HttpServerResponse.HttpServerResponse,
  path: string
): HttpServerResponse.HttpServerResponse =>
  response.status === 415
    ? toResponse(problem(2003, "Send the body as JSON with Content-Type: application/json"), path)
    : response
