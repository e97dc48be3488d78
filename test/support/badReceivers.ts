import type { RequestListener } from "node:http"
import { createServer as createHttpsServer } from "node:https"
import type { Server, Socket } from "node:net"
import { createServer as createTlsServer } from "node:tls"
import type { makeAuthority } from "./certificates.ts"
import { listen } from "./localServer.ts"

type Authority = Awaited<ReturnType<typeof makeAuthority>>

/** A receiver on loopback that counts its connections, its requests and the bytes that it sends. */
export interface Counted {
  readonly url: string
  /** Open connections. */
  readonly open: () => number
  /**
   * The maximum number of concurrent connections without a complete response. The sender may already have closed some
   * whose end has not been read here.
   */
  readonly mostOpen: () => number
  readonly requests: () => number
  /** How many bytes its sockets have written. */
  readonly sent: () => number
  readonly close: () => Promise<void>
}

const counted = async (
  server: Server,
  requests: () => number,
  isAnswered: (socket: Socket) => boolean = () => false
): Promise<Counted> => {
  const sockets = new Set<Socket>()
  let most = 0
  let closedBytes = 0
  server.on("connection", (socket: Socket) => {
    sockets.add(socket)
    most = Math.max(most, [...sockets].filter((it) => !isAnswered(it)).length)
    socket.on("error", () => {})
    socket.on("close", () => {
      sockets.delete(socket)
      closedBytes += socket.bytesWritten
    })
  })
  server.on("tlsClientError", () => {})
  const port = await listen(server)
  return {
    url: `https://localhost:${port}/hook`,
    open: () => sockets.size,
    mostOpen: () => most,
    requests,
    sent: () => [...sockets].reduce((sum, it) => sum + it.bytesWritten, closedBytes),
    close: async () => {
      for (const socket of sockets) socket.destroy()
      await new Promise((resolve) => server.close(resolve))
    }
  }
}

/** An HTTPS server. */
export const startHttps = async (
  authority: Authority,
  listener: RequestListener,
  certificate?: { readonly name?: string; readonly expired?: boolean }
) => {
  let requests = 0
  const answered = new Set<number | undefined>()
  const server = createHttpsServer(await authority.issue(certificate), (request, response) => {
    requests += 1
    const { remotePort } = request.socket
    response.once("finish", () => answered.add(remotePort))
    request.on("error", () => {})
    response.on("error", () => {})
    request.resume()
    request.on("end", () => listener(request, response))
  })
  // A port may be used again
  server.on("connection", ({ remotePort }: Socket) => answered.delete(remotePort))
  return counted(
    server,
    () => requests,
    ({ remotePort }) => answered.has(remotePort)
  )
}

/** Responds with raw bytes after the first bytes of the request. */
const startRaw = async (authority: Authority, answer: (socket: Socket, tcp: Socket) => void) => {
  let requests = 0
  const tcps: Array<Socket> = []
  const server = createTlsServer(await authority.issue(), (socket) => {
    socket.on("error", () => {})
    const tcp = tcps.find((it) => it.remotePort === socket.remotePort)
    socket.once("data", () => {
      requests += 1
      if (tcp !== undefined) answer(socket, tcp)
    })
  })
  server.on("connection", (socket: Socket) => tcps.push(socket))
  return counted(server, () => requests)
}

const chunk = Buffer.alloc(65_536, "x")

/** Sends as much as the other side reads, up to ten gigabytes. */
const pour: RequestListener = (_request, response) => {
  let left = 10e9
  const more = () => {
    while (left > 0 && !response.destroyed) {
      left -= chunk.length
      if (!response.write(chunk)) return void response.once("drain", more)
    }
  }
  response.writeHead(500, { "content-length": "10000000000" })
  more()
}

const drip = (socket: Socket) => {
  socket.write("HTTP/1.1 200 OK\r\nx-a: ")
  const timer = setInterval(() => socket.write("b"), 1000)
  socket.on("close", () => clearInterval(timer))
}

/** Each kind of bad receiver, and the failure class that its attempts must have. */
export const startBadReceivers = async (authority: Authority, redirectTo: string) => [
  { name: "never responds", failure: "timeout", ...(await startHttps(authority, () => {})) },
  { name: "drips a byte a second", failure: "timeout", ...(await startRaw(authority, drip)) },
  { name: "sends 10 GB", failure: "http_status", ...(await startHttps(authority, pour)) },
  {
    name: "sends garbage",
    failure: "protocol",
    ...(await startRaw(authority, (socket) => socket.end("\u0000garbage\r\n\r\n")))
  },
  {
    name: "resets",
    failure: "protocol",
    ...(await startRaw(authority, (_, tcp) => tcp.resetAndDestroy()))
  },
  {
    name: "has an expired certificate",
    failure: "tls",
    ...(await startHttps(authority, (_, response) => response.end(), { expired: true }))
  },
  {
    name: "has a certificate of another name",
    failure: "tls",
    ...(await startHttps(authority, (_, response) => response.end(), { name: "other.test" }))
  },
  {
    name: "redirects to 127.0.0.1",
    failure: "redirect",
    ...(await startHttps(authority, (_, response) =>
      response.writeHead(307, { location: redirectTo }).end()
    ))
  }
]
