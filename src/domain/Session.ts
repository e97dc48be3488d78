import { Schema } from "effect"
import type { DateTime } from "effect"
import type { ApiKeyId, SessionId, UserId } from "./Ids.ts"

/** How a user signed in. docs/reference/sessions.md#sign-in */
export const SignInMethod = Schema.Literals([
  "password",
  "api_key",
  "admin_token",
  "link",
  "oidc",
  "passkey"
])
export type SignInMethod = typeof SignInMethod.Type

/** A session that has not ended. */
export interface Session {
  readonly id: SessionId
  /** Null for the operator. */
  readonly userId: UserId | null
  readonly email: string | null
  readonly name: string | null
  readonly method: SignInMethod
  readonly apiKeyId: ApiKeyId | null
  /**
   * Whether the session belongs to an exchanged key. `isPrevious`: its secret was replaced and is valid until its grace
   * period ends.
   */
  readonly isLimited: boolean
  readonly isPrevious: boolean
  readonly address: string | null
  readonly createdAt: DateTime.Utc
  readonly lastSeenAt: DateTime.Utc
  readonly expiresAt: DateTime.Utc
}
