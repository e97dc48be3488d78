import { Layer } from "effect"
import { AccessTokens } from "./AccessTokens.ts"
import { AccessTokenStore } from "./AccessTokenStore.ts"
import { AdmissionStore } from "./AdmissionStore.ts"
import { ApiKeys } from "./ApiKeys.ts"
import { ManageReplays } from "./ManageReplays.ts"
import { ManageReplayStore } from "./ManageReplayStore.ts"
import { Oidc } from "./Oidc.ts"
import { Passkeys } from "./Passkeys.ts"
import { PasskeyStore } from "./PasskeyStore.ts"
import { Passwords } from "./Passwords.ts"
import { RequestQuotas } from "./RequestQuotas.ts"
import { Sessions } from "./Sessions.ts"
import { SessionStore } from "./SessionStore.ts"
import { Users } from "./Users.ts"
import { UserStore } from "./UserStore.ts"

/** The stores of users, keys and sessions. */
export const stores = Layer.mergeAll(
  AccessTokenStore.layer,
  AdmissionStore.layer,
  ManageReplayStore.layer,
  PasskeyStore.layer,
  SessionStore.layer,
  UserStore.layer
)

/** The services of users, keys and sessions. */
export const services = Layer.mergeAll(AccessTokens.layer, Users.layer, Oidc.layer).pipe(
  Layer.provideMerge(Sessions.layer),
  Layer.provideMerge(Passkeys.layer),
  Layer.provide(Passwords.layer),
  Layer.provideMerge(Layer.mergeAll(ApiKeys.layer, RequestQuotas.layer, ManageReplays.layer))
)
