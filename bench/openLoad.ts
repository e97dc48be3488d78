import { connect } from "node:net"
import type { Socket } from "node:net"

/** Requests that are sent on schedule, whether or not earlier ones have got responses. */
export interface OpenLoad {
  readonly port: number
  readonly perSecond: number
  readonly seconds: number
  /** The maximum number of connections. A request that finds none free is not sent. */
  readonly connectionsMax: number
  /** The bytes of the n-th request. */
  readonly request: (n: number) => string
}

export interface Responses {
  readonly sent: number
  readonly unsent: number
  /** Requests without a complete response at the end. */
  readonly open: number
  readonly broken: number
  /** Responses by status. */
  readonly statuses: Record<string, number>
  /** Responses below 300, and those with 429 and 503: when each was sent, and how long it took. */
  readonly accepted: ReadonlyArray<readonly [at: number, millis: number]>
  readonly refused: ReadonlyArray<readonly [at: number, millis: number]>
}

interface Connection {
  readonly socket: Socket
  received: string
  began: number
}

const isWhole = (text: string): boolean => {
  const head = text.indexOf("\r\n\r\n")
  if (head < 0) return false
  const length = Number(/\r\ncontent-length: (\d+)/iu.exec(text.slice(0, head + 2))?.[1] ?? -1)
  return length < 0 ? text.endsWith("0\r\n\r\n") : text.length >= head + 4 + length
}

/** How long to wait for responses after the last request, in milliseconds. */
const lastMillis = 5000

/** Drives a server on this machine at a given rate over keep-alive connections. */
export const openLoad = (options: OpenLoad): Promise<Responses> =>
  new Promise((resolve) => {
    const { connectionsMax, perSecond, port, request, seconds } = options
    const from = performance.now()
    const idle: Array<Connection> = []
    const all = new Set<Socket>()
    const counts = { sent: 0, unsent: 0, open: 0, broken: 0 }
    const statuses: Record<string, number> = {}
    const accepted: Array<readonly [number, number]> = []
    const refused: Array<readonly [number, number]> = []

    const receive = (connection: Connection, chunk: Buffer) => {
      connection.received += chunk.toString("latin1")
      if (connection.began === 0 || !isWhole(connection.received)) return
      const status = connection.received.slice(9, 12)
      const row = [connection.began - from, performance.now() - connection.began] as const
      statuses[status] = (statuses[status] ?? 0) + 1
      if (status < "300") accepted.push(row)
      if (status === "429" || status === "503") refused.push(row)
      counts.open -= 1
      connection.received = ""
      connection.began = 0
      idle.push(connection)
    }
    const open = (): Connection => {
      const socket = connect(port, "127.0.0.1")
      const connection: Connection = { socket, received: "", began: 0 }
      all.add(socket)
      socket.setNoDelay(true)
      socket.on("data", (chunk) => receive(connection, chunk))
      socket.on("error", () => {})
      socket.on("close", () => {
        all.delete(socket)
        const at = idle.indexOf(connection)
        if (at >= 0) idle.splice(at, 1)
        if (connection.began === 0) return
        counts.open -= 1
        counts.broken += 1
      })
      return connection
    }
    const send = (n: number) => {
      const connection = idle.pop() ?? (all.size < connectionsMax ? open() : undefined)
      if (connection === undefined) {
        counts.unsent += 1
        return
      }
      counts.sent += 1
      counts.open += 1
      connection.began = performance.now()
      connection.socket.write(request(n))
    }
    let n = 0
    const timer = setInterval(() => {
      const now = performance.now() - from
      const due = Math.min(seconds * perSecond, (now / 1000) * perSecond)
      while (n < due) {
        send(n)
        n += 1
      }
      const isOver =
        now > seconds * 1000 && (counts.open === 0 || now > seconds * 1000 + lastMillis)
      if (!isOver) return
      clearInterval(timer)
      const result = { ...counts, statuses, accepted, refused }
      for (const socket of all) socket.destroy()
      resolve(result)
    }, 5)
  })
