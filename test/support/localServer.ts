import { Effect } from "effect"
import { once } from "node:events"
import { createServer } from "node:http"
import type { RequestListener, Server as HttpServer } from "node:http"
import type { AddressInfo, Server } from "node:net"

/** Starts a server on a free port of 127.0.0.1. Returns the port. */
export const listen = async (server: Server): Promise<number> => {
  await once(server.listen(0, "127.0.0.1"), "listening")
  return (server.address() as AddressInfo).port
}

/** Ends a server with all its connections. */
export const stop = async (server: Pick<HttpServer, "closeAllConnections" | "close">) => {
  server.closeAllConnections()
  await new Promise((resolve) => server.close(resolve))
}

/** An HTTP server on 127.0.0.1 that runs until the scope closes. Returns its address. */
export const localServer = (listener: RequestListener) =>
  Effect.acquireRelease(
    Effect.promise(async () => {
      const server = createServer(listener)
      return { server, url: `http://127.0.0.1:${await listen(server)}` }
    }),
    ({ server }) => Effect.promise(() => stop(server))
  ).pipe(Effect.map(({ url }) => url))
