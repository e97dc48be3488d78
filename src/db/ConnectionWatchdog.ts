import { connect } from "node:net"
import type { Socket } from "node:net"
import type { DatabaseAddress } from "./DatabaseUnavailable.ts"

/** The longest statement, and the longest silence of the server. ADR 0124. */
export interface Timeouts {
  /** The server ends longer statements. Milliseconds. */
  readonly statementMillis: number
  /** A connection without traffic for this long is reset. Milliseconds. */
  readonly silenceMillis: number
}

/**
 * By itself, TCP notices a server behind a broken network only after a quarter of an hour. The server ends a statement
 * before its connection is reset, so that a statement that is repeated on another connection no longer runs on the
 * first.
 */
export const defaultTimeouts: Timeouts = { statementMillis: 30_000, silenceMillis: 45_000 }

/**
 * The pool closes a connection that has been idle for this long, at the latest after twice that time, which is before
 * it counts as silent.
 */
export const idleMillis = ({ silenceMillis }: Timeouts): number => silenceMillis * 0.4

/** Shorter than sql-pg's own limit, so that this code notices when the server does not respond. */
const connectMillisOf = ({ connectSeconds }: DatabaseAddress): number => connectSeconds * 800

/** The longest wait for the response to a probe of a silent server. */
const probeMillis = 1000

/** The message that requests TLS, which every Postgres answers with one letter. */
const sslRequest = Uint8Array.of(0, 0, 0, 8, 4, 210, 22, 47)

/** The response of a server that encrypts the connection. */
const encrypts = 0x53

/**
 * Opens connections that are reset when the server falls silent. New connections then fail at once, so that no caller
 * waits for them, until the server responds to a probe.
 */
export const openWatched = (
  address: DatabaseAddress,
  { silenceMillis }: Timeouts
): (() => Socket) => {
  let isSilent = false
  let isProbed = false

  const open = (): Socket => {
    const { host, port } = address
    const name = decodeURIComponent(host.replace(/^\[(.*)\]$/u, "$1"))
    const isPath = name.startsWith("/")
    const socket = isPath
      ? connect({ path: `${name}/.s.PGSQL.${port}` })
      : connect({ host: name, port: Number(port), noDelay: true })
    const giveUp = () => {
      isSilent = true
      socket.destroy(new Error("The connection timed out"))
    }
    let isEncrypted = false
    /** Bytes sent before the latest response. For an encrypted connection, only the TLS layer can tell. */
    let answered = 0
    const reset = () => {
      // Silence of an unused connection proves nothing: this process may have been paused, or its pool's clock may not
      // advance
      if (isEncrypted || socket.bytesWritten > answered) isSilent = true
      // Reset, not closed: pending statements must not run later, because they are repeated elsewhere
      if (isPath) socket.destroy()
      else socket.resetAndDestroy()
    }
    socket.setTimeout(connectMillisOf(address), giveUp)
    socket.on("data", () => (answered = socket.bytesWritten))
    socket.once("data", (first: Uint8Array) => {
      isSilent = false
      isEncrypted = first.length === 1 && first[0] === encrypts
      socket.off("timeout", giveUp)
      socket.setTimeout(silenceMillis, reset)
    })
    return socket
  }

  const probe = () => {
    if (isProbed) return
    isProbed = true
    const socket = open().setTimeout(probeMillis).unref()
    socket.once("data", () => socket.destroy())
    socket.on("error", () => {})
    socket.once("close", () => {
      isProbed = false
    })
    socket.write(sslRequest)
  }

  return () => {
    if (!isSilent) return open()
    probe()
    throw new Error("The server has fallen silent")
  }
}
