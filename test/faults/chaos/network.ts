import { connect, createServer } from "node:net"
import type { AddressInfo, Socket } from "node:net"

/**
 * The state of the network: everything passes, data vanish silently in one or both directions, or connections are
 * refused.
 */
export type Weather =
  | "passes"
  | "swallows requests"
  | "swallows responses"
  | "swallows all"
  | "refuses"

/** A TCP proxy on 127.0.0.1 in front of a port that may change. */
export class Proxy {
  weather: Weather = "passes"
  target: number
  readonly #server
  readonly #sockets = new Set<Socket>()

  private constructor(target: number) {
    this.target = target
    this.#server = createServer((client) => this.#serve(client))
  }

  static async start(target: number): Promise<Proxy> {
    const proxy = new Proxy(target)
    await new Promise<void>((resolve) => {
      proxy.#server.listen(0, "127.0.0.1", resolve)
    })
    return proxy
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port
  }

  /** Resets all connections, like a restarting router. */
  reset(): void {
    for (const socket of this.#sockets) socket.resetAndDestroy()
  }

  #serve(client: Socket): void {
    if (this.weather === "refuses") return void client.resetAndDestroy()
    const server = connect(this.target, "127.0.0.1")
    // A connection that has lost data stays silent: nothing may follow the missing part
    let isCut = false
    const passes = (silent: Weather) => {
      if (this.weather === silent || this.weather === "swallows all") isCut = true
      return !isCut
    }
    for (const [from, to, silent] of [
      [client, server, "swallows requests"],
      [server, client, "swallows responses"]
    ] as const) {
      this.#sockets.add(from)
      from.on("data", (chunk) => {
        if (passes(silent)) to.write(chunk)
      })
      from.on("error", () => {})
      from.on("close", () => {
        this.#sockets.delete(from)
        if (passes(silent)) to.destroy()
      })
    }
  }

  async close(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy()
    await new Promise((resolve) => {
      this.#server.close(resolve)
    })
  }
}
