import { connect } from "node:net"
import type { Socket } from "node:net"
import type { DatabaseAddress } from "./DatabaseUnavailable.ts"

/** How long a statement may take, and how long the server may say nothing. ADR 0124. */
export interface Timeouts {
  /** The server ends a statement that takes longer. Milliseconds. */
  readonly statementMillis: number
  /** A connection on which nothing has come or gone for so long is broken off. Milliseconds. */
  readonly silenceMillis: number
}

/**
 * A server that vanished without a word (a cut network) would be noticed by TCP after a quarter of an hour.
 * The server itself ends a statement before we give a connection up, so that nothing of what was asked
 * there is still to be done when it is asked again elsewhere.
 */
export const defaultTimeouts: Timeouts = { statementMillis: 30_000, silenceMillis: 45_000 }

/**
 * The pool lets go of a connection that was not used for so long, at the latest when twice that has passed:
 * before it would be taken for a silent one.
 */
export const idleMillis = ({ silenceMillis }: Timeouts): number => silenceMillis * 0.4

/** A new connection is given up a little before sql-pg does, so that it is known that nobody answered. */
const answerMillisOf = ({ connectSeconds }: DatabaseAddress): number => connectSeconds * 800

/** While the server is silent, whether it still is, is found out by tries that take so long at most. */
const trialMillis = 1000

/** Asks whether TLS is spoken, which every Postgres answers with a letter. */
const sslRequest = Uint8Array.of(0, 0, 0, 8, 4, 210, 22, 47)

/**
 * Opens connections to this address that are broken off when the server falls silent. From then on new ones
 * fail at once, so that nobody waits in a line behind them, until one that was opened aside is answered.
 */
export const openWatched = (
  address: DatabaseAddress,
  { silenceMillis }: Timeouts
): (() => Socket) => {
  let isSilent = false
  let isTried = false

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
    const breakOff = () => {
      isSilent = true
      // With a reset: what still waits to be sent must not be done later, for it is asked again elsewhere
      if (isPath) socket.destroy()
      else socket.resetAndDestroy()
    }
    socket.setTimeout(answerMillisOf(address), giveUp)
    socket.once("data", () => {
      isSilent = false
      socket.off("timeout", giveUp)
      socket.setTimeout(silenceMillis, breakOff)
    })
    return socket
  }

  const tryAside = () => {
    if (isTried) return
    isTried = true
    const socket = open().setTimeout(trialMillis).unref()
    socket.once("data", () => socket.destroy())
    socket.on("error", () => {})
    socket.once("close", () => {
      isTried = false
    })
    socket.write(sslRequest)
  }

  return () => {
    if (!isSilent) return open()
    tryAside()
    throw new Error("The server has fallen silent")
  }
}
