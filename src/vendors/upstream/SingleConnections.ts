import type { Socket } from "node:net"
import { createSecureContext, TLSSocket } from "node:tls"
import type { SecureContext } from "node:tls"
import { buildConnector, Client, errors } from "undici"
import { NameCache } from "./NameCache.ts"

export interface SingleConnectionsOptions {
  readonly connectMillis: number
  /** PEM certificates trusted instead of the system's, for tests. */
  readonly ca?: string | undefined
  readonly names?: NameCache
  /** Opens the connections, instead of a connector that resolves names itself. */
  readonly connector?: buildConnector.connector | undefined
}

/** A TLS session belongs to its origin. */
interface Origin {
  readonly hostname: string
  connect: buildConnector.connector
  /** The TLS session that the next handshake resumes. */
  session: Buffer | undefined
}

/** The most origins: far more than the vendors of one operator. */
const originsMax = 100

/** Shared by all connections: undici would create an error with a stack for each connection that it closes. */
const ended = new errors.InformationalError("The exchange has ended")

/**
 * Connections for one request each. They share resolved names, trusted certificates and TLS sessions. undici references
 * sessions so weakly that a garbage collection loses them. ADR 0080.
 */
export class SingleConnections {
  readonly #options: SingleConnectionsOptions
  readonly #names: NameCache
  readonly #origins = new Map<string, Origin>()
  readonly #open = new Set<Client>()
  #secureContext: SecureContext | undefined

  constructor(options: SingleConnectionsOptions) {
    this.#options = options
    this.#names = options.names ?? new NameCache()
  }

  /** Opens a connection for one request; `close` ends it. */
  open(url: URL): Client {
    const origin = this.#originOf(url)
    const client = new Client(url.origin, {
      allowH2: false,
      headersTimeout: 0,
      bodyTimeout: 0,
      connect: (target, callback) => this.#connect(origin, target, callback)
    })
    this.#open.add(client)
    return client
  }

  close(client: Client): void {
    this.#open.delete(client)
    client.destroy(ended, () => {})
  }

  /** Closes all connections. Running exchanges fail. */
  closeAll(): void {
    for (const client of this.#open) this.close(client)
  }

  #originOf(url: URL): Origin {
    const known = this.#origins.get(url.origin)
    if (known !== undefined) return known
    if (this.#origins.size >= originsMax) this.#origins.clear()
    const { hostname } = url
    const made = { hostname, connect: this.#connector(undefined), session: undefined }
    this.#origins.set(url.origin, made)
    return made
  }

  #connector(session: Buffer | undefined): buildConnector.connector {
    const { ca, connectMillis: timeout, connector } = this.#options
    if (connector !== undefined) return connector
    return buildConnector({
      allowH2: false,
      timeout,
      lookup: this.#names.lookup,
      maxCachedSessions: 0,
      ...(session === undefined ? {} : { session }),
      // Created once, because creating it costs more than a handshake. Deno reads `ca` instead
      secureContext: (this.#secureContext ??= createSecureContext({ ca })),
      ...(ca === undefined ? {} : { ca })
    })
  }

  #connect(
    origin: Origin,
    target: buildConnector.Options,
    callback: buildConnector.Callback
  ): void {
    origin.connect(target, (...result) => {
      if (result[0] === null) this.#keepSessions(origin, result[1])
      else {
        this.#names.forget(origin.hostname)
        if (origin.session !== undefined) this.#setSession(origin, undefined)
      }
      callback(...result)
    })
  }

  #keepSessions(origin: Origin, socket: Socket): void {
    if (!(socket instanceof TLSSocket)) return
    // A TLS 1.2 session is complete after the handshake; TLS 1.3 sessions arrive later
    if (socket.getProtocol() !== "TLSv1.3") this.#setSession(origin, socket.getSession())
    socket.on("session", (session) => this.#setSession(origin, session))
  }

  #setSession(origin: Origin, session: Buffer | undefined): void {
    origin.session = session
    origin.connect = this.#connector(session)
  }
}
