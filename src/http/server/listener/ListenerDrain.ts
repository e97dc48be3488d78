import { Duration, Effect } from "effect"
import type { IncomingMessage, Server, ServerResponse } from "node:http"
import type { Duplex } from "node:stream"
import { closeGently } from "./Acceptors.ts"

/** Closes the connections of a stopping process. docs/operating.md#stopping */
export interface ListenerDrain {
  /** Makes every response from now on close its connection. */
  readonly begin: () => void
  /** Stops listening, and closes idle connections. */
  readonly stopListening: Effect.Effect<void>
  /** Closes unused connections and succeeds once no request is running. Call it after `stopListening`. */
  readonly idle: Effect.Effect<void>
  /** The responses that are not complete. */
  readonly open: () => ReadonlyArray<ServerResponse>
  /** Call for each request before it is handled. */
  readonly onRequest: (request: IncomingMessage, response: ServerResponse) => void
}

/**
 * How long a client may take for its next request on a connection whose last response did not close it, in
 * milliseconds.
 */
const lingerMillis = 5000

/** A connection that has sent nothing for this long after the listener stopped does not delay the drain. */
const firstRequestMillis = 1000

const recheck = Duration.millis(20)

export const makeListenerDrain = (
  server: Server,
  last: WeakMap<Duplex, ServerResponse>
): ListenerDrain => {
  let isDraining = false
  let stoppedAt = 0
  const sockets = new Set<Duplex>()
  server.on("connection", (socket: Duplex) => {
    sockets.add(socket)
    socket.once("close", () => sockets.delete(socket))
  })
  const open = () =>
    [...sockets].flatMap((socket) => {
      const response = last.get(socket)
      return response === undefined || response.writableFinished ? [] : [response]
    })
  const isIdle = () => {
    if (open().length > 0) return false
    if (performance.now() - stoppedAt > firstRequestMillis) return true
    return [...sockets].every((socket) => last.has(socket))
  }
  /** Closes connections without a request, which Node counts as busy: the server would wait for their timeout. */
  const closeUnused = () => {
    for (const socket of sockets) if (!last.has(socket)) socket.destroy()
  }
  return {
    begin: () => {
      isDraining = true
      server.keepAliveTimeout = lingerMillis
      for (const response of open()) closeAfter(response)
    },
    stopListening: Effect.andThen(
      closeGently(server),
      Effect.sync(() => {
        stoppedAt = performance.now()
      })
    ),
    idle: Effect.suspend(() =>
      isIdle() ? Effect.void : Effect.repeat(Effect.sleep(recheck), { until: isIdle })
    ).pipe(Effect.andThen(Effect.sync(closeUnused))),
    open,
    onRequest: (request, response) => {
      last.set(request.socket, response)
      if (isDraining) closeAfter(response)
    }
  }
}

/** Makes Node send `Connection: close`. */
const closeAfter = (response: ServerResponse) => {
  if (!response.headersSent) response.shouldKeepAlive = false
}
