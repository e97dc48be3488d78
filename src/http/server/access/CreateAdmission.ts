import { Effect, Option } from "effect"
import { HttpServerRequest } from "effect/http"
import { Admission, counted } from "../../../process/admission/Admission.ts"
import { makeCallerOfRoute } from "../listener/RequestCaller.ts"
import { makeAdmitInference } from "./Authentication.ts"

/** Admits the caller of a create. The lookup of the key counts as work in hand of that caller. */
export const makeAdmitCreate = Effect.gen(function* () {
  const admit = yield* makeAdmitInference
  const callerOf = yield* makeCallerOfRoute
  const { creates } = yield* Admission
  return () =>
    Effect.flatMap(HttpServerRequest.HttpServerRequest, (request) =>
      counted(creates, callerOf(request), admit(Option.none()))
    )
})
