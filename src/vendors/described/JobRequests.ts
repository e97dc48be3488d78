import { Clock, Redacted, Schema } from "effect"
import type { Effect } from "effect"
import type { JobProtocol } from "../../catalog/jobs/JobProtocol.ts"
import type { AdapterContext } from "../AdapterContext.ts"
import { isSameOrigin } from "../BaseUrl.ts"
import { send } from "../VendorCall.ts"
import type { VendorCall } from "../VendorCall.ts"
import type { VendorError } from "../VendorError.ts"
import type { VendorResponse } from "../VendorHttp.ts"
import { credentialOf } from "./JobAuth.ts"
import { withParameter } from "./JobUrl.ts"

/**
 * Sends one request of a description, with its headers and the key. A URL that the vendor named at another origin gets
 * neither headers nor key, and goes through the egress guard.
 */
export type JobSend = (
  call: Omit<VendorCall<unknown>, "schema">
) => Effect.Effect<VendorResponse, VendorError>

export const makeSend = (
  { auth = { scheme: "bearer" }, headers: own = {} }: JobProtocol,
  { account, http, observeResponse, toNamed }: AdapterContext
): JobSend => {
  const api = { http, headers: own, rules: [], reportedError: () => undefined, observeResponse }
  const elsewhere = { ...api, http: toNamed, headers: {} }
  const key = Redacted.value(account.key)
  const lasting = auth.scheme === "jwt" ? undefined : credentialOf(auth, key, 0)
  return (call) => {
    if (!isSameOrigin(account.baseUrl, call.url)) {
      return send(elsewhere, { ...call, schema: Schema.Unknown })
    }
    return Clock.clockWith((clock) => {
      const { headers, query } = lasting ?? credentialOf(auth, key, clock.currentTimeMillisUnsafe())
      const url = query === undefined ? call.url : withParameter(call.url, ...query)
      return send(api, {
        ...call,
        url,
        headers: { ...headers, ...call.headers },
        schema: Schema.Unknown
      })
    })
  }
}
