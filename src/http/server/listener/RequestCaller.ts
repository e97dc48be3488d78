import { Effect } from "effect"
import type { HttpServerRequest } from "effect/http"
import { IncomingMessage } from "node:http"
import { KnownKeys } from "../../../users/KnownKeys.ts"
import { clientKeyOf } from "../access/ClientKeys.ts"
import { makeNetworkOf } from "./ClientAddress.ts"

/** Identifies the caller whose share of the process a request uses. */
export type RequestCaller = (request: IncomingMessage) => string

/**
 * The user of the key in the request's headers, if the key was recently valid; otherwise the client's address (IPv6 by
 * /64). Does no lookup, because it runs before the request is read. docs/reference/keys-and-limits.md#shares
 */
export const makeRequestCaller = Effect.gen(function* () {
  const known = yield* KnownKeys
  const networkOf = yield* makeNetworkOf
  return (request: IncomingMessage): string => {
    const key = clientKeyOf(request)
    const owner = key && known.ownerOf(key.digest)
    return owner ?? networkOf(request.headers, request.socket.remoteAddress)
  }
})

/** The same for a request that has reached the routes. Requests without a connection count as one caller. */
export const makeCallerOfRoute = Effect.map(
  makeRequestCaller,
  (callerOf) =>
    ({ source }: HttpServerRequest.HttpServerRequest): string =>
      source instanceof IncomingMessage ? callerOf(source) : ""
)
