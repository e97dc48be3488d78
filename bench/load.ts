import { connect } from "node:net"

export interface Load {
  readonly port: number
  readonly connections: number
  readonly seconds: number
  /** The bytes of the n-th request. */
  readonly request: (n: number) => string
  /** Called with each response, header and body. */
  readonly onResponse?: (text: string) => void
}

export interface Measured {
  readonly perSecond: number
  readonly p50Millis: number
  readonly p99Millis: number
  /** Responses by status. */
  readonly statuses: Record<string, number>
}

const lengthOf = (head: string) => Number(/\r\ncontent-length: (\d+)/iu.exec(head)?.[1] ?? -1)

const isWhole = (response: string): boolean => {
  const head = response.indexOf("\r\n\r\n")
  if (head < 0) return false
  const length = lengthOf(response.slice(0, head + 2))
  return length < 0 ? response.endsWith("0\r\n\r\n") : response.length >= head + 4 + length
}

/** Sends requests one after the other on each of several keep-alive connections, with as little work as possible. */
export const load = async (options: Load): Promise<Measured> => {
  const ends = performance.now() + options.seconds * 1000
  const latencies: Array<number> = []
  const statuses: Record<string, number> = {}
  let sent = 0
  const one = () =>
    new Promise<void>((resolve, reject) => {
      const socket = connect(options.port, "127.0.0.1")
      socket.setNoDelay(true)
      let began = 0
      let received = ""
      const next = () => {
        if (performance.now() >= ends) {
          socket.destroy()
          return resolve()
        }
        began = performance.now()
        socket.write(options.request(sent++))
      }
      socket.on("connect", next).on("error", reject)
      socket.on("close", () => reject(new Error("the server closed a connection")))
      socket.on("data", (chunk) => {
        received += chunk.toString("latin1")
        if (!isWhole(received)) return
        latencies.push(performance.now() - began)
        const status = received.slice(9, 12)
        statuses[status] = (statuses[status] ?? 0) + 1
        options.onResponse?.(received)
        received = ""
        next()
      })
    })
  await Promise.all(Array.from({ length: options.connections }, one))
  latencies.sort((a, b) => a - b)
  const at = (share: number) => latencies[Math.floor(latencies.length * share)] ?? 0
  return {
    perSecond: Math.round(latencies.length / options.seconds),
    p50Millis: at(0.5),
    p99Millis: at(0.99),
    statuses
  }
}
