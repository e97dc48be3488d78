import { Headers } from "effect/http"
import { createServer, STATUS_CODES } from "node:http"
import type { Server, ServerResponse } from "node:http"
import type { Duplex } from "node:stream"
import { problem } from "../domain/Problem.ts"
import type { Problem } from "../domain/Problem.ts"
import { problemBody } from "./Problems.ts"
import { traceOf } from "./RequestTrace.ts"

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
export const makeListener = (bounds: ListenerBounds = listenerBounds): Server => {
  const server = createServer({
    headersTimeout: bounds.headersMillis,
    requestTimeout: bounds.requestMillis,
    keepAliveTimeout: bounds.idleMillis,
    connectionsCheckingInterval: bounds.checkMillis,
    maxHeaderSize: bounds.headersBytesMax,
    insecureHTTPParser: false,
    // Answered as a problem by `Edge`
    requireHostHeader: false
  })
  answerBrokenRequests(server)
  // RFC 9110, 10.1.1: an expectation that nobody knows may be passed over
  server.on("checkExpectation", (request, response) => server.emit("request", request, response))
  return server
}

/**
 * What is no request never reaches the routes, and still is answered as a problem: after the answers
 * to the whole requests before it on the connection, else in place of the broken one's. ADR 0090.
 */
const answerBrokenRequests = (server: Server): void => {
  const last = new WeakMap<Duplex, ServerResponse>()
  const broken = new WeakSet<Duplex>()
  server.prependListener("request", (request, response) => last.set(request.socket, response))
  server.on("clientError", (error: NodeJS.ErrnoException, socket: Duplex) => {
    if (broken.has(socket)) return
    broken.add(socket)
    const answer = () =>
      socket.writable
        ? socket.end(brokenAnswer(faultOf(error.code)), () => socket.destroy())
        : socket.destroy()
    const running = last.get(socket)
    if (error.code === "ECONNRESET" || !socket.writable) return socket.destroy()
    if (running === undefined || running.writableFinished) return answer()
    if (running.req.complete) return running.once("close", answer)
    return running.headersSent ? socket.destroy() : answer()
  })
}

const faultOf = (code: string | undefined): Problem => {
  switch (code) {
    case "HPE_HEADER_OVERFLOW":
      return problem(2016, "The headers are too large")
    case "HPE_CHUNK_EXTENSIONS_OVERFLOW":
      return problem(2004, "The chunk extensions of the body are too large")
    case "ERR_HTTP_REQUEST_TIMEOUT":
      return problem(2015, "The request did not arrive in time")
    default:
      return problem(2014, "This is not a valid HTTP request")
  }
}

const brokenAnswer = (fault: Problem): string => {
  // Its path cannot be relied on, so the answer names none of them
  const body = problemBody(fault, "/")
  const text = JSON.stringify(body)
  return [
    `HTTP/1.1 ${body.status} ${STATUS_CODES[body.status]}`,
    "Content-Type: application/problem+json",
    `Content-Length: ${Buffer.byteLength(text)}`,
    `Traceparent: ${traceOf(Headers.empty).traceparent}`,
    "Connection: close",
    "",
    text
  ].join("\r\n")
}
