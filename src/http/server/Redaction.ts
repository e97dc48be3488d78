import { Layer } from "effect"
import { Headers, UrlParams } from "effect/http"

/**
 * What never stands in a trace or a log of a request: everywhere that the vendors' clients put their
 * key (ADR 0074), the permission in the link of an artifact, and
 * the address of a callback.
 */
export const layer = Layer.mergeAll(
  Layer.succeed(Headers.CurrentRedactedNames, [
    ...Headers.CurrentRedactedNames.defaultValue(),
    "proxy-authorization",
    "x-goog-api-key",
    "api-key"
  ]),
  Layer.succeed(UrlParams.CurrentRedactedNames, [
    ...UrlParams.CurrentRedactedNames.defaultValue(),
    "key",
    "api_key",
    "access_token",
    "signature",
    "token"
  ])
)
