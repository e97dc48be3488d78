import { Context } from "effect"
import { HttpApiMiddleware, HttpApiSecurity } from "effect/http-api"
import type { ApiKeyId, UserId } from "../domain/Ids.ts"
import type { Session } from "../domain/Session.ts"
import { manageErrors as error } from "./ManageErrors.ts"

/** The key with which the caller uses the management API, directly or through a session that was exchanged for it. */
export interface ActingKey {
  readonly apiKeyId: ApiKeyId
  /** Whether the key has limits. docs/reference/keys-and-limits.md#who-changes-access */
  readonly isLimited: boolean
  /** Whether the caller sent the secret from before the last rotation. */
  readonly isPrevious: boolean
}

/** The caller of the management API: the operator or a user, by key, token or session. */
export type Caller =
  | { readonly _tag: "Operator"; readonly session: Session | undefined }
  | {
      readonly _tag: "User"
      readonly userId: UserId
      /** `undefined` if the session was not exchanged for a key. */
      readonly key: ActingKey | undefined
      readonly session: Session | undefined
    }

/** The caller that `ManageGate` has authenticated. */
export class CurrentCaller extends Context.Service<CurrentCaller, Caller>()(
  "gateway/contract/CurrentCaller"
) {}

/**
 * Every request to the management API passes this gate. It authenticates the caller (an API key with scope `manage`, a
 * session, or the operator's token), checks the request, replays repeated POSTs, and audits writes.
 */
export class ManageGate extends HttpApiMiddleware.Service<
  ManageGate,
  { provides: CurrentCaller }
>()("gateway/contract/ManageGate", { security: { bearer: HttpApiSecurity.bearer }, error }) {}

/** The API key of an inference route. The handlers of those routes check it themselves. ADR 0042 */
export class InferenceKey extends HttpApiMiddleware.Service<InferenceKey>()(
  "gateway/contract/InferenceKey",
  { security: { bearer: HttpApiSecurity.bearer } }
) {}

/**
 * Marks an endpoint that grants, changes or revokes access, and names the kind of access. Responses of such an endpoint
 * may contain a secret. docs/reference/keys-and-limits.md#who-changes-access
 */
export class ChangesAccess extends Context.Service<
  ChangesAccess,
  "keys" | "sessions" | "endpoints"
>()("gateway/contract/ChangesAccess") {}

/**
 * Replaces `ManageGate` where a session begins. Accepts only a small body, and refuses requests from pages of other
 * sites.
 */
export class SignInGate extends HttpApiMiddleware.Service<SignInGate>()(
  "gateway/contract/SignInGate",
  { error }
) {}

/** The outermost middleware. Returns every failure of a management endpoint as a problem. */
export class ManageProblems extends HttpApiMiddleware.Service<ManageProblems>()(
  "gateway/contract/ManageProblems"
) {}
