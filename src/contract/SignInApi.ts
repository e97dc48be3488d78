import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "effect/http-api"
import { Text } from "../catalog/bodies/Fields.ts"
import { PasskeyAssertion } from "../domain/Passkey.ts"
import { SignInGate } from "./Access.ts"
import { SessionView } from "./manage/SessionsApi.ts"
import { manageErrors as error } from "./ManageErrors.ts"

const Secret = Text.check(Schema.isNonEmpty(), Schema.isMaxLength(1000)).annotate({
  message: "Expected a text of 1 to 1000 characters"
})

/** What a page must know before the user has signed in. docs/reference/sessions.md#sign-in */
const ServiceView = Schema.Struct({
  name: Schema.String,
  /** Whether everything is simulated, because no vendor has a key. */
  sandbox: Schema.Boolean,
  /** Whether users can sign in with an OpenID provider. */
  oidc: Schema.Boolean,
  /** Whether users can sign in with passkeys, for which `BASE_URL` must have a host name. */
  passkeys: Schema.Boolean,
  /** Where users buy credits (`TOP_UP_URL`); null if the operator sells them. */
  top_up_url: Schema.NullOr(Schema.String)
}).annotate({ identifier: "Service" })

/** WebAuthn's `PublicKeyCredentialRequestOptionsJSON`. docs/reference/sessions.md#passkeys */
const PasskeySignIn = Schema.Struct({
  challenge: Schema.String,
  rpId: Schema.String,
  timeout: Schema.Int,
  userVerification: Schema.Literal("required")
}).annotate({ identifier: "PasskeySignIn" })

/** docs/reference/sessions.md#sign-in */
export class SignInApi extends HttpApiGroup.make("signIn")
  .add(
    HttpApiEndpoint.post("signIn", "/session", {
      payload: Schema.Struct({
        email: Schema.optionalKey(Secret),
        password: Schema.optionalKey(Secret),
        api_key: Schema.optionalKey(Secret),
        operator_token: Schema.optionalKey(Secret),
        link: Schema.optionalKey(Secret),
        passkey: Schema.optionalKey(PasskeyAssertion)
      }),
      success: SessionView,
      error
    }),
    HttpApiEndpoint.get("getPasskeySignIn", "/session/passkey", {
      success: PasskeySignIn,
      error
    }),
    HttpApiEndpoint.get("getService", "/service", { success: ServiceView, error })
  )
  .middleware(SignInGate)
  .annotateMerge(OpenApi.annotations({ title: "Sessions" })) {}
