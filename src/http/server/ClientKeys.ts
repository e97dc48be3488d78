import { Exit } from "effect"
import type { IncomingHttpHeaders, IncomingMessage } from "node:http"
import type { Socket } from "node:net"
import { digestOf } from "../../users/KeyText.ts"
import type { KeyDigest } from "../../users/KeyText.ts"
import { clientTokenOf } from "./Authentication.ts"

/** A client's key, and the digest that it is cached by. */
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
 * Reads the key of a request; `undefined` if it is malformed. The last key of each connection is
 * cached, because most connections send the same key again. It stays in memory no longer than the
 * connection's last request, which Node keeps. ADR 0119.
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

const readKey = (headers: IncomingHttpHeaders): ClientKey | undefined => {
  const token = clientTokenOf(headers)
  return Exit.isSuccess(token) ? { token: token.value, digest: digestOf(token.value) } : undefined
}
