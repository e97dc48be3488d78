import { createServer } from "node:http"
import type { Server } from "node:http"

/** How long a client may take and how much it may send before a request is one. ADR 0043. */
export interface ListenerBounds {
  /** From the first byte to the end of the headers, in milliseconds. */
  readonly headersMillis: number
  /** From the first byte to the end of the body, in milliseconds. */
  readonly requestMillis: number
  /** A connection without a request is closed after this, in milliseconds. */
  readonly idleMillis: number
  /** How often the first two are looked after, in milliseconds. */
  readonly checkMillis: number
  /** All headers together, in bytes; beyond is 431. */
  readonly headersBytesMax: number
}

/**
 * 128 MiB of Base64 pass within five minutes at 4 Mbit/s. Idle connections outlive the 60 s of usual
 * load balancers, so that it is they who close first.
 */
export const listenerBounds: ListenerBounds = {
  headersMillis: 15_000,
  requestMillis: 300_000,
  idleMillis: 65_000,
  checkMillis: 5000,
  headersBytesMax: 16 * 1024
}

/**
 * Node's server with every bound set: one that is slow or never ends is answered 408, headers that
 * are too large 431, what is no HTTP 400, each by closing the connection. HTTP's strict parser.
 */
export const makeListener = (bounds: ListenerBounds = listenerBounds): Server =>
  createServer({
    headersTimeout: bounds.headersMillis,
    requestTimeout: bounds.requestMillis,
    keepAliveTimeout: bounds.idleMillis,
    connectionsCheckingInterval: bounds.checkMillis,
    maxHeaderSize: bounds.headersBytesMax,
    insecureHTTPParser: false,
    requireHostHeader: true
  })
