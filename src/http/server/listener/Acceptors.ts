import { Effect } from "effect"
import type { Server as HttpServer } from "node:http"
import { connect, createServer, Server as NetServer } from "node:net"
import type { Server } from "node:net"
import type { ListeningSockets, SocketHandle } from "../../../process/ProcessGroup.ts"

export interface Address {
  readonly host: string
  readonly port: number
}

/**
 * Whether several sockets of this process can listen on one port and share its connections. Other systems give all
 * connections to one of them, or do not allow it.
 */
export const sharesPorts = process.platform === "linux"

/** The number of listening sockets in addition to the server's own. */
const acceptorsCount = sharesPorts ? 63 : 0

/** The backlog of each socket: connections that wait in the kernel. */
export const backlogMax = 128

/**
 * Adds listening sockets on the same port. libuv accepts one connection per listening socket in each event-loop turn,
 * so new connections wait many turns under load. With several sockets, a turn accepts as many connections. The server's
 * own socket must listen with `reusePort`. None are added where ports cannot be shared. ADR 0208.
 */
export const addAcceptors = (
  server: HttpServer,
  inherited: ReadonlyArray<SocketHandle> = []
): void => {
  const acceptors: Acceptors = { open: [], isClosed: false }
  acceptorsOf.set(server, acceptors)
  const open = (address: Address | SocketHandle): Server => {
    const acceptor = createServer({ allowHalfOpen: true, noDelay: true })
    acceptor.on("connection", (socket) => server.emit("connection", socket))
    // The other sockets accept without this one
    acceptor.on("error", () => {})
    acceptor.on("listening", () => acceptors.isClosed && acceptor.close())
    return "port" in address
      ? acceptor.listen({ ...address, reusePort: true, backlog: backlogMax })
      : acceptor.listen(address, backlogMax)
  }
  server.on("listening", () => {
    const bound = server.address()
    if (bound === null || typeof bound === "string") return
    const own = { host: bound.address, port: bound.port }
    const all = inherited.length > 0 ? inherited : Array.from({ length: acceptorsCount }, () => own)
    for (const address of all) acceptors.open.push(open(address))
  })
  const close = server.close.bind(server)
  server.close = (callback) => {
    acceptors.isClosed = true
    const all = acceptors.open.splice(0)
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

/** The listening sockets of a server, for the process that replaces this one. ADR 0295 */
export const listeningSockets = (server: HttpServer): ListeningSockets => ({
  handles: () => [server, ...(acceptorsOf.get(server)?.open ?? [])].flatMap(handleOf),
  close: () => {
    const acceptors = acceptorsOf.get(server)
    if (acceptors !== undefined) acceptors.isClosed = true
    for (const acceptor of acceptors?.open.splice(0) ?? []) acceptor.close()
    // `HttpServer.close` would also close idle connections
    NetServer.prototype.close.call(server)
  }
})

/**
 * The handles with which Node sends a server to another process. A server that is created from a handle there accepts
 * at once.
 */
const handleOf = (server: Server): ReadonlyArray<SocketHandle> => {
  const handle: unknown = Reflect.get(server, "_handle")
  return isHandle(handle) ? [handle] : []
}

const isHandle = (handle: unknown): handle is SocketHandle =>
  typeof handle === "object" && handle !== null

interface Acceptors {
  readonly open: Array<Server>
  isClosed: boolean
}

const acceptorsOf = new WeakMap<HttpServer, Acceptors>()

/**
 * Closes all listening sockets and resets as few connections as possible. The kernel resets connections that have
 * arrived but that Node has not accepted. Node accepts connections in the poll phase of a turn, so each socket is
 * closed separately, shortly after a poll phase in which it got no connection. ADR 0208.
 */
export const closeGently = (
  server: HttpServer,
  millisMax = closingMillisMax
): Effect.Effect<void> =>
  Effect.suspend(() => {
    const until = performance.now() + millisMax
    const acceptors = acceptorsOf.get(server)
    if (acceptors !== undefined) acceptors.isClosed = true
    // Otherwise `close` would do this itself, just before it stops listening
    server.closeIdleConnections()
    const all = [server, ...(acceptors?.open.splice(0) ?? [])]
    return Effect.forEach(all, (it) => closeInQuietTurn(it, until), { discard: true })
  })

/** Under load no turn may be quiet, so sockets that still listen after this time close at once. */
const closingMillisMax = 1000

/** A turn of up to this many milliseconds counts as quiet. Each further turn allows this much more. */
const quietMillis = 0.05

const closeInQuietTurn = (server: Server, until: number): Effect.Effect<void> =>
  Effect.callback((resume) => {
    let hasArrived = false
    let turns = 0
    let began = performance.now()
    const note = () => {
      hasArrived = true
    }
    const turn = () => {
      const now = performance.now()
      turns += 1
      const isQuiet = turns > 1 && !hasArrived && now - began < turns * quietMillis
      if (!isQuiet && now < until) {
        hasArrived = false
        began = now
        return void setImmediate(turn)
      }
      server.close()
      server.off("connection", note)
      resume(Effect.void)
    }
    server.on("connection", note)
    setImmediate(turn)
  })

/**
 * Whether no program listens on the address; the system would let another program of the same user share the port.
 * Tests by connecting, because briefly listening would reset clients that connect.
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

/** A timed-out probe means the port is in use. */
const probeMillis = 2000
