import { Effect, Exit } from "effect"
import { Headers, HttpServerRequest } from "effect/http"
import type { IncomingMessage } from "node:http"
import type { Socket } from "node:net"
import { problem } from "../../../domain/Problem.ts"
import type { Problem } from "../../../domain/Problem.ts"
import { digestOf } from "../../../users/KeyText.ts"
import type { KeyDigest } from "../../../users/KeyText.ts"
import { headerText } from "../HeaderText.ts"
import type { HeaderValues } from "../HeaderText.ts"

const bearer = /^bearer +(\S+) *$/iu

/** The token of `Authorization: Bearer …`. Fails with 1001 if there is none. */
export const tokenOf = (headers: HeaderValues): Exit.Exit<string, Problem> => {
  const header = headerText(headers, "authorization")
  if (header === undefined || header.trim() === "") return tokenMissing
  const token = bearer.exec(header)?.[1]
  return token === undefined ? tokenMalformed : Exit.succeed(token)
}

export const tokenMissing = Exit.fail(
  problem(1001, "Send an API key as Authorization: Bearer <API_KEY>")
)
const tokenMalformed = Exit.fail(
  problem(1002, "The Authorization header is not of the form: Bearer <API_KEY>")
)

/** The token of a passthrough call: from `Authorization`, or from where the vendor's clients put it. ADR 0074. */
export const clientTokenOf = (headers: HeaderValues): Exit.Exit<string, Problem> => {
  const given = headerText(headers, "x-api-key") ?? headerText(headers, "x-goog-api-key")
  return headers["authorization"] === undefined && given !== undefined
    ? Exit.succeed(given.trim())
    : tokenOf(headers)
}

/** For routes that only read `Authorization`: moves a key that a vendor's client sends elsewhere to that header. */
export const withClientKey = <A, E, R>(self: Effect.Effect<A, E, R>) =>
  Effect.updateService(self, HttpServerRequest.HttpServerRequest, (request) => {
    const token = clientTokenOf(request.headers)
    return Exit.isSuccess(token)
      ? request.modify({
          headers: Headers.set(request.headers, "authorization", `Bearer ${token.value}`)
        })
      : request
  })

/** A client's key and the digest under which it is cached. */
export interface ClientKey {
  readonly token: string
  readonly digest: KeyDigest
}

interface CachedKey {
  readonly authorization: string
  readonly key: ClientKey | undefined
}

const cache = new WeakMap<Socket, CachedKey>()

/**
 * Reads the key of a request; `undefined` if it is malformed. Caches the last key of each connection, because most
 * connections send the same key again. It stays in memory no longer than the connection's last request, which Node
 * keeps.
 */
export const clientKeyOf = ({ headers, socket }: IncomingMessage): ClientKey | undefined => {
  const { authorization } = headers
  if (authorization === undefined) return readKey(headers)
  const cached = cache.get(socket)
  if (cached?.authorization === authorization) return cached.key
  const key = readKey(headers)
  cache.set(socket, { authorization, key })
  return key
}

/** The same for a request without a connection. */
export const readKey = (headers: HeaderValues): ClientKey | undefined => {
  const token = clientTokenOf(headers)
  return Exit.isSuccess(token) ? { token: token.value, digest: digestOf(token.value) } : undefined
}
