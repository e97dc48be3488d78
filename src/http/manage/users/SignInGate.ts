import { ByteSize, Effect, Layer } from "effect"
import { HttpIncomingMessage, HttpServerRequest } from "effect/http"
import { SignInGate } from "../../../contract/Access.ts"
import { signInBytesMax } from "../../../domain/limits/SignInLimits.ts"
import { problem } from "../../../domain/Problem.ts"
import { makeSessionCookies } from "../../server/access/SessionCookies.ts"
import { withJsonType } from "../../server/bodies/JsonBody.ts"
import { checkRequest, withReadBody } from "../ManageGate.ts"

/** Implements `SignInGate` of the contract. */
export const layer = Layer.effect(
  SignInGate,
  Effect.map(
    makeSessionCookies,
    (cookies) =>
      (httpEffect, { endpoint }) =>
        Effect.flatMap(HttpServerRequest.HttpServerRequest, (request) =>
          Number(request.headers["content-length"] ?? 0) > signInBytesMax
            ? tooLarge
            : Effect.andThen(
                cookies.refuseOtherPages(request),
                Effect.flatMap(checkRequest(endpoint), (body) => withReadBody(body)(httpEffect))
              )
        ).pipe(
          withJsonType,
          Effect.provideService(HttpIncomingMessage.MaxBodySize, ByteSize.bytes(signInBytesMax))
        )
  )
)

const tooLarge = Effect.fail(problem(2004, `The body is larger than ${signInBytesMax} bytes`))
