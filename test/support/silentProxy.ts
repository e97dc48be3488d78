import { connect, createServer } from "node:net"
import type { Socket } from "node:net"
import { listen } from "./localServer.ts"

/** Which direction is dropped: to the server, from it, or both. */
export type Swallows = "nothing" | "requests" | "responses" | "all"

/** A proxy to a server on 127.0.0.1 that can drop all data without closing a connection. */
export const startSilentProxy = async (targetPort: number) => {
  let swallows: Swallows = "nothing"
  const sockets = new Set<Socket>()
  const server = createServer({ allowHalfOpen: false }, (client) => {
    const target = connect(targetPort, "127.0.0.1")
    // A connection that has lost data stays silent for the rest of its life
    let isCut = false
    const passes = (direction: "requests" | "responses") => {
      if (swallows === "all" || swallows === direction) isCut = true
      return !isCut
    }
    for (const [from, to, direction] of [
      [client, target, "requests"],
      [target, client, "responses"]
    ] as const) {
      sockets.add(from)
      from.on("data", (chunk) => {
        if (passes(direction)) to.write(chunk)
      })
      from.on("error", () => {})
      from.on("close", () => {
        sockets.delete(from)
        // The end of a direction is passed on or dropped like its data
        if (passes(direction)) to.destroy()
      })
    }
  })
  return {
    port: await listen(server),
    swallow: (what: Swallows) => {
      swallows = what
    },
    [Symbol.asyncDispose]: async () => {
      for (const socket of sockets) socket.destroy()
      await new Promise((resolve) => server.close(resolve))
    }
  }
}
