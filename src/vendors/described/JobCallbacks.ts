import { Effect } from "effect"
import type { Callbacks } from "../../catalog/jobs/JobProtocol.ts"
import { textAt } from "../../catalog/jobs/JsonPath.ts"
import type { AccountSetting } from "../../domain/Provider.ts"
import { unsigned } from "../CallbackScheme.ts"
import type { CallbackScheme } from "../CallbackScheme.ts"
import * as FalCallbacks from "../fal/FalCallbacks.ts"
import { jsonIn, unreadableError } from "../Faults.ts"
import { isSecret, standardScheme } from "../replicate/ReplicateCallbacks.ts"
import { isOk } from "../VendorHttp.ts"
import type { JobSend } from "./JobRequests.ts"
import { urlOf } from "./JobUrl.ts"

/** How the callbacks of a description are verified. docs/vendors-as-files.md#callbacks */
export const callbackScheme = (
  { proof }: Callbacks,
  { baseUrl, jwksUrl }: AccountSetting,
  send: JobSend
): CallbackScheme => {
  switch (proof.scheme) {
    case "url":
      return unsigned
    case "fal":
      return FalCallbacks.scheme(jwksUrl)
    case "standard-webhooks": {
      const { at, path } = proof.secret
      const url = urlOf(baseUrl, path, {}) ?? baseUrl
      return standardScheme(
        Effect.flatMap(send({ purpose: "query", url }), (response) => {
          const secret = isOk(response) ? textAt([at], jsonIn(response)) : undefined
          return secret !== undefined && isSecret(secret)
            ? Effect.succeed([secret])
            : unreadableError("query", response)
        })
      )
    }
  }
}
