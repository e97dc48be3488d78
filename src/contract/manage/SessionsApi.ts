import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { PasskeyId, SessionId, UserId } from "../../domain/Ids.ts"
import { PasskeyAttestation, PasskeyName } from "../../domain/Passkey.ts"
import { SignInMethod } from "../../domain/Session.ts"
import { Timestamp } from "../../domain/task/Task.ts"
import { ChangesAccess } from "../Access.ts"
import { ofUser, pageOf, pageQuery } from "../Lists.ts"
import { created, manageErrors as error } from "../ManageErrors.ts"
import { Password } from "./UsersApi.ts"

export const SessionView = Schema.Struct({
  id: SessionId,
  /** Null for the operator. */
  user: Schema.NullOr(
    Schema.Struct({ id: UserId, email: Schema.String, name: Schema.NullOr(Schema.String) })
  ),
  role: Schema.Literals(["user", "operator"]),
  method: SignInMethod,
  /** Whether this is the session of the request. */
  current: Schema.Boolean,
  address: Schema.NullOr(Schema.String),
  created_at: Timestamp,
  last_seen_at: Timestamp,
  /** When it ends if it is not used before. */
  expires_at: Timestamp
}).annotate({ identifier: "Session" })

/** WebAuthn's `PublicKeyCredentialCreationOptionsJSON`. docs/reference/sessions.md#passkeys */
const PasskeyCreation = Schema.Struct({
  challenge: Schema.String,
  rp: Schema.Struct({ id: Schema.String, name: Schema.String }),
  user: Schema.Struct({ id: Schema.String, name: Schema.String, displayName: Schema.String }),
  pubKeyCredParams: Schema.Array(
    Schema.Struct({ type: Schema.Literal("public-key"), alg: Schema.Int })
  ),
  timeout: Schema.Int,
  attestation: Schema.Literal("none"),
  excludeCredentials: Schema.Array(
    Schema.Struct({ type: Schema.Literal("public-key"), id: Schema.String })
  ),
  authenticatorSelection: Schema.Struct({
    residentKey: Schema.Literal("required"),
    requireResidentKey: Schema.Boolean,
    userVerification: Schema.Literal("required")
  })
}).annotate({ identifier: "PasskeyCreation" })

const PasskeyView = Schema.Struct({
  id: PasskeyId,
  name: Schema.String,
  created_at: Timestamp,
  /** When it was last used to sign in. */
  last_used_at: Schema.NullOr(Timestamp)
}).annotate({ identifier: "Passkey" })

/** Sessions of the caller. docs/reference/sessions.md */
export class SessionsApi extends HttpApiGroup.make("sessions")
  .add(
    HttpApiEndpoint.get("getSession", "/session", { success: SessionView, error }),
    HttpApiEndpoint.delete("signOut", "/session", { success: HttpApiSchema.NoContent, error }),
    HttpApiEndpoint.post("changePassword", "/session/password", {
      payload: Schema.Struct({
        current_password: Schema.optionalKey(Password),
        password: Password
      }),
      success: SessionView,
      error
    }).annotate(ChangesAccess, "sessions"),
    HttpApiEndpoint.get("getPasskeyCreation", "/passkeys/options", {
      success: PasskeyCreation,
      error
    }),
    HttpApiEndpoint.post("createPasskey", "/passkeys", {
      payload: Schema.Struct({
        name: PasskeyName,
        credential: PasskeyAttestation,
        current_password: Schema.optionalKey(Password)
      }),
      success: PasskeyView.pipe(created),
      error
    }).annotate(ChangesAccess, "sessions"),
    HttpApiEndpoint.get("listPasskeys", "/passkeys", {
      query: { ...pageQuery(PasskeyId), ...ofUser },
      success: pageOf(PasskeyView),
      error
    }),
    HttpApiEndpoint.delete("deletePasskey", "/passkeys/:id", {
      params: { id: PasskeyId },
      success: HttpApiSchema.NoContent,
      error
    }).annotate(ChangesAccess, "sessions"),
    HttpApiEndpoint.get("listSessions", "/sessions", {
      query: { ...pageQuery(SessionId), ...ofUser },
      success: pageOf(SessionView),
      error
    }),
    HttpApiEndpoint.delete("revokeSession", "/sessions/:id", {
      params: { id: SessionId },
      success: HttpApiSchema.NoContent,
      error
    }).annotate(ChangesAccess, "sessions"),
    HttpApiEndpoint.post("createSignInLink", "/users/:id/sign-in-links", {
      params: { id: UserId },
      success: Schema.Struct({ url: Schema.String, expires_at: Timestamp })
        .annotate({ identifier: "SignInLink" })
        .pipe(created),
      error
    }).annotate(ChangesAccess, "sessions")
  )
  .annotateMerge(OpenApi.annotations({ title: "Sessions" })) {}
