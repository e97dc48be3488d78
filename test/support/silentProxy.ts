import { connect, createServer } from "node:net"
import type { AddressInfo, Socket } from "node:net"

/** What a network may swallow: what goes to the server, what comes from it, or both. */
export type Swallows = "nothing" | "questions" | "answers" | "all"

/** A network between a client and a server of 127.0.0.1 that swallows without a word, closing nothing. */
export const startSilentProxy = async (targetPort: number) => {
  let swallows: Swallows = "nothing"
  const sockets = new Set<Socket>()
  const server = createServer({ allowHalfOpen: false }, (client) => {
    const target = connect(targetPort, "127.0.0.1")
    // What was once swallowed of a connection is missing for good: it stays silent to its end
    let isCut = false
    const passes = (direction: "questions" | "answers") => {
      if (swallows === "all" || swallows === direction) isCut = true
      return !isCut
    }
    for (const [from, to, direction] of [
      [client, target, "questions"],
      [target, client, "answers"]
    ] as const) {
      sockets.add(from)
      from.on("data", (chunk) => {
        if (passes(direction)) to.write(chunk)
      })
      from.on("error", () => {})
      from.on("close", () => {
        sockets.delete(from)
        // The end of the one side goes the same way as its data
        if (passes(direction)) to.destroy()
      })
    }
  })
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  return {
    port: (server.address() as AddressInfo).port,
    swallow: (what: Swallows) => {
      swallows = what
    },
    [Symbol.asyncDispose]: async () => {
      for (const socket of sockets) socket.destroy()
      await new Promise((resolve) => server.close(resolve))
    }
  }
}
