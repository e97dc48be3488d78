import { Client } from "undici"

/**
 * The connections to one origin, each for one call at a time. The one that was used last is used
 * next: it is in the caches, and what a busy moment opened is left alone and closes. undici's own
 * pool looks through all that are busy, twice a call. ADR 0119.
 */
export class UpstreamConnections {
  readonly #origin: string
  readonly #options: Client.Options
  /** All that are open or may be. */
  readonly #clients = new Set<Client>()
  readonly #idle: Array<Client> = []

  constructor(origin: string, options: Client.Options) {
    this.#origin = origin
    this.#options = options
  }

  /** For one call, behind which it is given back. */
  take(): Client {
    return this.#idle.pop() ?? this.#open()
  }

  giveBack(client: Client): void {
    this.#idle.push(client)
  }

  /** What is under way fails. */
  async destroy(): Promise<void> {
    await Promise.all(Array.from(this.#clients, (client) => client.destroy()))
  }

  #open(): Client {
    const client = new Client(this.#origin, this.#options)
    this.#clients.add(client)
    const closed = () => this.#forget(client)
    // Behind the end of its call, which gives it back
    client.on("disconnect", closed)
    client.on("connectionError", closed)
    return client
  }

  /** One that is in use opens its connection anew when it needs to. */
  #forget(client: Client): void {
    const place = this.#idle.indexOf(client)
    if (place < 0) return
    this.#idle.splice(place, 1)
    this.#clients.delete(client)
    client.close(() => {})
  }
}
