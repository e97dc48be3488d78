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

/** What a page has to know before anybody has signed in. docs/reference/sessions.md#sign-in */
const ServiceView = Schema.Struct({
  name: Schema.String,
  /** No vendor has a key: everything is simulated. */
  sandbox: Schema.Boolean,
  /** Whether an OpenID provider signs in. */
  oidc: Schema.Boolean,
  /** Whether passkeys sign in: `BASE_URL` has a name. */
  passkeys: Schema.Boolean,
  /** Where credits are bought, `TOP_UP_URL`; null: from the operator. */
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
