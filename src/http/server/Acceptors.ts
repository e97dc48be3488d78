import type { Server as HttpServer } from "node:http"
import { connect, createServer } from "node:net"
import type { Server } from "node:net"

export interface Address {
  readonly host: string
  readonly port: number
}

/**
 * Whether several sockets of this process may listen on one port, each with connections of its own. Other
 * systems give all connections to one of them, or refuse to share.
 */
export const sharesPorts = process.platform === "linux"

/** Listening sockets beside the server's own. */
const acceptorsCount = sharesPorts ? 63 : 0

/** Connections that wait in the kernel for each of them. */
export const backlogMax = 128

/**
 * libuv accepts one connection of a listening socket in each turn of the event loop, so that under load new
 * connections wait for many turns before anything can be answered. With several sockets on the port as many
 * are accepted in a turn. The server's own has to listen with `reusePort`; none are added where ports are not
 * shared. ADR 0208.
 */
export const addAcceptors = (server: HttpServer): void => {
  const acceptors: Array<Server> = []
  let isClosed = false
  const open = (host: string, port: number): Server => {
    const acceptor = createServer({ allowHalfOpen: true, noDelay: true })
    acceptor.on("connection", (socket) => server.emit("connection", socket))
    // The others accept without it
    acceptor.on("error", () => {})
    acceptor.on("listening", () => isClosed && acceptor.close())
    return acceptor.listen({ host, port, reusePort: true, backlog: backlogMax })
  }
  server.on("listening", () => {
    const bound = server.address()
    if (bound === null || typeof bound === "string") return
    for (let n = 0; n < acceptorsCount; n += 1) acceptors.push(open(bound.address, bound.port))
  })
  const close = server.close.bind(server)
  server.close = (callback) => {
    isClosed = true
    const all = acceptors.splice(0)
    let left = all.length + 1
    let fault: Error | undefined
    const onClosed = () => {
      left -= 1
      if (left === 0) callback?.(fault)
    }
    for (const acceptor of all) acceptor.close(onClosed)
    return close((error) => {
      fault = error
      onClosed()
    })
  }
}

/**
 * Whether nobody listens there: the system would let another program of the same user share the port.
 * Asked by connecting, because a socket that listens for a moment would reset who connects to it.
 */
export const isFree = ({ host, port }: Address): Promise<boolean> =>
  new Promise((resolve) => {
    if (port === 0) return resolve(true)
    const probe = connect({ host, port, timeout: probeMillis })
    const end = (isRefused: boolean) => {
      probe.destroy()
      resolve(isRefused)
    }
    probe.on("connect", () => end(false))
    probe.on("timeout", () => end(false))
    probe.on("error", () => end(true))
  })

/** Who does not answer for so long is there, and busy. */
const probeMillis = 2000
