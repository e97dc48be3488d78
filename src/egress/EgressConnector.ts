import { Result, Schema } from "effect"
import { isIP } from "node:net"
import type { LookupFunction, Socket } from "node:net"
import { createSecureContext } from "node:tls"
import { Agent, Client, Pool, buildConnector, errors } from "undici"
import type { Dispatcher } from "undici"
import { errorCode } from "../domain/ErrorCode.ts"
import type { EgressAllow } from "../domain/network/EgressAllow.ts"
import { parseAddress } from "../domain/network/IpAddress.ts"
import { EgressRefused, checkAddresses, checkHost } from "./EgressRules.ts"

/** The host name has no address, or the name servers did not respond. */
export class NameNotResolved extends Schema.TaggedError<NameNotResolved>()("NameNotResolved", {
  host: Schema.String,
  /** The resolver's code, such as `ENOTFOUND`. */
  code: Schema.String
}) {
  override get message(): string {
    return `${this.host} does not resolve (${this.code})`
  }
}

/** The TCP connection or the TLS handshake failed. */
export class ConnectionFailed extends Schema.TaggedError<ConnectionFailed>()("ConnectionFailed", {
  phase: Schema.Literals(["connect", "tls"]),
  timedOut: Schema.Boolean,
  detail: Schema.String
}) {
  override get message(): string {
    return this.detail
  }
}

/** Resolves a name to all of its addresses. The signal cancels the lookup. The default is `makeResolve`. */
export type Resolve = (host: string, signal?: AbortSignal) => Promise<ReadonlyArray<string>>

export interface ConnectorOptions {
  readonly allow: EgressAllow
  readonly resolve: Resolve
  /** PEM certificates trusted instead of the system's, for tests. */
  readonly ca?: string | undefined
  /** The timeout of each phase: the TCP connection with its DNS lookup, and the TLS handshake. */
  readonly connectTimeoutMillis: number
  readonly connectionsPerOriginMax: number
  /** Called when a connection to this origin opens. The returned function is called when it closes. */
  readonly onOpened?: ((origin: string) => () => void) | undefined
}

/** The connection that carries a request. */
export interface Peer {
  /** `undefined` once it is closed. */
  socket: Socket | undefined
  remoteAddress: string | null
}

/** A dispatch handler that receives the connection of its request. */
export abstract class PeerHandler {
  peer: Peer = { socket: undefined, remoteAddress: null }
}

/**
 * The time for one of several addresses before the next is tried. Node's default of 250 ms is too short for distant
 * hosts.
 */
const addressAttemptMillis = 2000

/** Resolves a name and checks every address. A single non-public address refuses the name. */
export const resolveChecked = async (
  allow: EgressAllow,
  resolve: Resolve,
  host: string
): Promise<Result.Result<ReadonlyArray<string>, EgressRefused | NameNotResolved>> => {
  const resolved = await resolve(host).then(Result.succeed, (cause: unknown) =>
    Result.fail(new NameNotResolved({ host, code: codeOf(cause) }))
  )
  if (Result.isFailure(resolved)) return resolved
  if (resolved.success.length === 0) {
    return Result.fail(new NameNotResolved({ host, code: "ENODATA" }))
  }
  return Result.map(checkAddresses(allow, host, resolved.success), () => resolved.success)
}

/**
 * An agent that checks every new connection. Names are resolved once, inside the connection attempt, and the connection
 * uses the checked addresses, so DNS rebinding between check and connect is impossible. Keep-alive; HTTP/1.1 only;
 * redirects are not followed.
 */
export const makeGuardedAgent = (options: ConnectorOptions): Agent => {
  const connectTo = makeConnector(options)
  return new Agent({
    allowH2: false,
    factory: (origin) =>
      new Pool(origin, {
        connections: options.connectionsPerOriginMax,
        allowH2: false,
        factory: (origin) => {
          const peer: Peer = { socket: undefined, remoteAddress: null }
          return new PeerClient(origin, peer, (target, callback) =>
            connectTo(target, (...result) => {
              const socket = result[1] ?? undefined
              peer.socket = socket
              peer.remoteAddress = socket?.remoteAddress ?? null
              const onClosed = socket && options.onOpened?.(origin.origin)
              socket?.once("close", () => {
                if (peer.socket === socket) peer.socket = undefined
                onClosed?.()
              })
              callback(...result)
            })
          )
        }
      })
  })
}

/** One connection of a pool. It passes itself to the handler of each request. */
class PeerClient extends Client {
  readonly #peer: Peer
  constructor(origin: URL, peer: Peer, connect: buildConnector.connector) {
    super(origin, { connect, allowH2: false })
    this.#peer = peer
  }
  override dispatch(
    options: Dispatcher.DispatchOptions,
    handler: Dispatcher.DispatchHandler
  ): boolean {
    if (handler instanceof PeerHandler) handler.peer = this.#peer
    return super.dispatch(options, handler)
  }
}

/** Checks each connection. Connects TCP and TLS in two steps, so that the error says which of them failed. */
export const makeConnector = (
  options: Pick<ConnectorOptions, "allow" | "resolve" | "ca" | "connectTimeoutMillis">
): buildConnector.connector => {
  const { allow, ca, connectTimeoutMillis: timeout } = options
  const toTcp = buildConnector({
    timeout,
    allowH2: false,
    lookup: guardedLookup(options),
    autoSelectFamily: true,
    autoSelectFamilyAttemptTimeout: addressAttemptMillis
  })
  // Shared by all connections, because creating it costs a good part of a handshake. Deno reads `ca` instead
  const trust = ca === undefined ? {} : { ca }
  const secureContext = createSecureContext(trust)
  const toTls = buildConnector({ timeout, allowH2: false, ...trust, secureContext })
  return (target, callback) => {
    // The lookup hook is not called for addresses, so the host itself is checked here
    const checked = checkHost(allow, target.hostname)
    if (Result.isFailure(checked)) return callback(checked.failure, null)
    const secure = target.protocol === "https:"
    const { servername: _servername, ...plain } = target
    const port = target.port === "" ? (secure ? "443" : "80") : target.port
    toTcp({ ...plain, protocol: "http:", port }, (...result) => {
      if (result[0] !== null) return callback(connectionError("connect", result[0]), null)
      const socket = result[1]
      const refused = checkPeer(allow, target.hostname, socket)
      if (refused !== undefined) {
        socket.destroy()
        return callback(refused, null)
      }
      if (!secure) return callback(null, socket)
      toTls({ ...target, port, httpSocket: socket }, (...result) => {
        if (result[0] === null) return callback(null, result[1])
        socket.destroy()
        callback(connectionError("tls", result[0]), null)
      })
    })
  }
}

/** Checks the connected address again, for runtimes that do not call the lookup hook. */
const checkPeer = (
  allow: EgressAllow,
  hostname: string,
  socket: Socket
): EgressRefused | undefined => {
  const checked = checkAddresses(allow, hostname, [socket.remoteAddress ?? "nowhere"])
  return Result.isFailure(checked) ? checked.failure : undefined
}

/** The `lookup` hook of `net.connect`: returns checked addresses only. */
const guardedLookup =
  ({ allow, resolve }: Pick<ConnectorOptions, "allow" | "resolve">): LookupFunction =>
  (host, hook, callback) => {
    void resolveChecked(allow, resolve, host).then((result) => {
      if (Result.isFailure(result)) return callback(result.failure, [])
      const family = hook.family === 4 || hook.family === "IPv4" ? 4 : hook.family === 6 ? 6 : 0
      const found = result.success
        .map((address) => ({ address, family: isIP(address) }))
        .filter((entry) => family === 0 || entry.family === family)
      const first = found[0]
      if (first === undefined) {
        return callback(new NameNotResolved({ host, code: "ENODATA" }), [])
      }
      return hook.all === true ? callback(null, found) : callback(null, first.address, first.family)
    })
  }

const connectionError = (phase: "connect" | "tls", error: Error): Error => {
  if (error instanceof EgressRefused || error instanceof NameNotResolved) return error
  const timedOut = error instanceof errors.ConnectTimeoutError || codeOf(error) === "ETIMEDOUT"
  // When several addresses were tried, Node reports an AggregateError without a message
  const cause: unknown = error instanceof AggregateError ? error.errors[0] : error
  return new ConnectionFailed({
    phase,
    timedOut,
    detail: phase === "tls" ? handshakeText(cause) : textOf(cause)
  })
}

/** What is wrong with the host, for its owner: OpenSSL names addresses in memory and files of its source. */
const handshakeText = (cause: unknown): string =>
  handshakeFaults.get(codeOf(cause)) ??
  (cause instanceof Error && "reason" in cause && codeOf(cause).startsWith("ERR_SSL_")
    ? `the TLS handshake failed: ${cause.reason}`
    : // Advice for the operator of Node.js follows
      textOf(cause).replace(/; if the root CA .*/su, ""))

const outdated = "the host does not support TLS 1.2 or newer"

const handshakeFaults: ReadonlyMap<string, string> = new Map([
  ["ECONNRESET", "the host closed the connection during the TLS handshake"],
  ["ERR_SSL_WRONG_VERSION_NUMBER", "the port does not respond with TLS"],
  ["ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION", outdated],
  ["ERR_SSL_UNSUPPORTED_PROTOCOL", outdated]
])

const codeOf = (cause: unknown): string => errorCode(cause) ?? "UNKNOWN"

const textOf = (cause: unknown): string =>
  cause instanceof Error && cause.message !== "" ? cause.message : codeOf(cause)

/** The host is an address, so there is nothing to resolve. */
export const isAddressHost = (host: string): boolean => parseAddress(host) !== undefined
