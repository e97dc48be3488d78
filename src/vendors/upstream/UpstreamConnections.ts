import { Client } from "undici"

/**
 * The connections to one origin, each for one call at a time. The most recently used one is next, so
 * that connections opened in a burst become idle and close. undici's own pool searches all busy
 * connections twice for each call.
 */
export class UpstreamConnections {
  readonly #origin: string
  readonly #options: Client.Options
  /** All clients; not all of them have an open connection. */
  readonly #clients = new Set<Client>()
  readonly #idle: Array<Client> = []

  constructor(origin: string, options: Client.Options) {
    this.#origin = origin
    this.#options = options
  }

  /** Takes a client for one call; `giveBack` returns it afterwards. */
  take(): Client {
    return this.#idle.pop() ?? this.#open()
  }

  giveBack(client: Client): void {
    this.#idle.push(client)
  }

  /** Closes all connections. Running calls fail. */
  async destroy(): Promise<void> {
    await Promise.all(Array.from(this.#clients, (client) => client.destroy()))
  }

  #open(): Client {
    const client = new Client(this.#origin, this.#options)
    this.#clients.add(client)
    const closed = () => this.#forget(client)
    // These events come after the end of the call, which has given the client back
    client.on("disconnect", closed)
    client.on("connectionError", closed)
    return client
  }

  /** A client in use is not removed: it reconnects when needed. */
  #forget(client: Client): void {
    const index = this.#idle.indexOf(client)
    if (index < 0) return
    this.#idle.splice(index, 1)
    this.#clients.delete(client)
    client.close(() => {})
  }
}
