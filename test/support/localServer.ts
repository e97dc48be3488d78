import { Effect } from "effect"
import { createServer } from "node:http"
import type { RequestListener } from "node:http"
import type { AddressInfo } from "node:net"

/** An HTTP server on 127.0.0.1 that runs until the scope closes. Returns its address. */
export const localServer = (listener: RequestListener) =>
  Effect.acquireRelease(
    Effect.promise(async () => {
      const server = createServer(listener)
      await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
      return server
    }),
    (server) =>
      Effect.promise(() => {
        server.closeAllConnections()
        return new Promise((resolve) => server.close(resolve))
      })
  ).pipe(Effect.map((server) => `http://127.0.0.1:${(server.address() as AddressInfo).port}`))
