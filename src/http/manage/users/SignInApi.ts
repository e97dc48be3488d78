import { ByteSize, Effect, Layer, Schema } from "effect"
import { HttpIncomingMessage, HttpServerRequest } from "effect/http"
import { HttpApiEndpoint, HttpApiGroup, HttpApiMiddleware, OpenApi } from "effect/http-api"
import { Text } from "../../../catalog/bodies/Fields.ts"
import { problem } from "../../../domain/Problem.ts"
import { signInBytesMax } from "../../../domain/SignInLimits.ts"
import { withJsonType } from "../../server/JsonBody.ts"
import { makeSessionCookies } from "../../server/SessionCookies.ts"
import { manageErrors as error } from "../ManageErrors.ts"
import { checkRequest, withReadBody } from "../ManageGate.ts"
import { SessionView } from "./SessionsApi.ts"

/** In place of `ManageGate` where a session begins: a small body, and from no page of another site. */
export class SignInGate extends HttpApiMiddleware.Service<SignInGate>()(
  "gateway/http/manage/SignInGate",
  { error }
) {
  static readonly layer = Layer.effect(
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
}

const tooLarge = Effect.fail(problem(2004, `The body is larger than ${signInBytesMax} bytes`))

const Secret = Text.check(Schema.isNonEmpty(), Schema.isMaxLength(1000)).annotate({
  message: "Expected a text of 1 to 1000 characters"
})

/** What a page has to know before anybody has signed in. docs/reference/sessions.md#sign-in */
const ServiceView = Schema.Struct({
  name: Schema.String,
  /** No vendor has a key: everything is simulated. */
  sandbox: Schema.Boolean,
  /** Whether an OpenID provider signs in. */
  oidc: Schema.Boolean
}).annotate({ identifier: "Service" })

/** docs/reference/sessions.md#sign-in */
export class SignInApi extends HttpApiGroup.make("signIn")
  .add(
    HttpApiEndpoint.post("signIn", "/session", {
      payload: Schema.Struct({
        email: Schema.optionalKey(Secret),
        password: Schema.optionalKey(Secret),
        api_key: Schema.optionalKey(Secret),
        operator_token: Schema.optionalKey(Secret),
        link: Schema.optionalKey(Secret)
      }),
      success: SessionView,
      error
    }),
    HttpApiEndpoint.get("getService", "/service", { success: ServiceView, error })
  )
  .middleware(SignInGate)
  .annotateMerge(OpenApi.annotations({ title: "Sessions" })) {}
