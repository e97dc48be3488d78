import { Exit } from "effect"
import type { IncomingHttpHeaders, IncomingMessage } from "node:http"
import type { Socket } from "node:net"
import { digestOf } from "../../users/ApiKeys.ts"
import type { KeyDigest } from "../../users/ApiKeys.ts"
import { clientTokenOf } from "./Authentication.ts"

/** A client's key as it came, and what it is known by. */
export interface ClientKey {
  readonly token: string
  readonly digest: KeyDigest
}

interface Last {
  readonly authorization: string
  readonly key: ClientKey | undefined
}

/**
 * The key of a request, if it is of the right form. A connection mostly brings the same one again,
 * which is then not read and digested anew. Node has its last request in memory as long. ADR 0119.
 */
export const makeKeyOf = () => {
  const lasts = new WeakMap<Socket, Last>()
  return ({ headers, socket }: IncomingMessage): ClientKey | undefined => {
    const { authorization } = headers
    if (authorization === undefined) return readKey(headers)
    const last = lasts.get(socket)
    if (last?.authorization === authorization) return last.key
    const key = readKey(headers)
    lasts.set(socket, { authorization, key })
    return key
  }
}

const readKey = (headers: IncomingHttpHeaders): ClientKey | undefined => {
  const token = clientTokenOf(headers)
  return Exit.isSuccess(token) ? { token: token.value, digest: digestOf(token.value) } : undefined
}
