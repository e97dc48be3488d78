import { Context, Effect, Layer } from "effect"
import type { Scope } from "effect"
import { createServer, IncomingMessage, ServerResponse, STATUS_CODES } from "node:http"
import type { Server } from "node:http"
import type { Duplex } from "node:stream"
import { problem } from "../../domain/Problem.ts"
import type { Problem } from "../../domain/Problem.ts"
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

/** Looks at a request before the routes do: takes it and answers `true`, or leaves it to them. */
export type Door = (request: IncomingMessage, response: ServerResponse) => boolean

/** Node's server, and the door in front of the routes. ADR 0113. */
export class Listener extends Context.Service<
  Listener,
  {
    /** To be served by the routes. */
    readonly server: Server
    /** Until the scope ends. */
    readonly open: (door: Door) => Effect.Effect<void, never, Scope.Scope>
    /** Past the door: its owner took the request, and finds it better served by the routes. */
    readonly toRoutes: (request: IncomingMessage, response: ServerResponse) => void
  }
>()("gateway/http/server/Listener") {
  static readonly layer = (bounds?: ListenerBounds) =>
    Layer.sync(Listener, () => makeListener(bounds))
}

/** What was last asked on a connection. */
type LastAnswers = WeakMap<Duplex, ServerResponse>

export const makeListener = (bounds: ListenerBounds = listenerBounds): Listener["Service"] => {
  const server = makeServer(bounds)
  const last: LastAnswers = new WeakMap()
  answerBrokenRequests(server, last)
  const emit = server.emit.bind(server)
  let door: Door = () => false
  // All listeners of `request` hear of all requests: only here can one be kept from some of them.
  server.emit = (event: string, ...args: ReadonlyArray<unknown>): boolean => {
    const [request, response] = args
    if (
      event === "request" &&
      request instanceof IncomingMessage &&
      response instanceof ServerResponse
    ) {
      last.set(request.socket, response)
      if (door(request, response)) return true
    }
    return emit(event, ...args)
  }
  const stand = (next: Door) =>
    Effect.sync(() => {
      door = next
    })
  return {
    server,
    open: (opened) => Effect.acquireRelease(stand(opened), () => stand(() => false)),
    toRoutes: (request, response) => {
      emit("request", request, response)
    }
  }
}

/**
 * Node's server with every bound set: one that is slow or never ends is answered 408, headers that
 * are too large 431, what is no HTTP 400, each by closing the connection. HTTP's strict parser.
 */
const makeServer = (bounds: ListenerBounds): Server => {
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
  // RFC 9110, 10.1.1: an expectation that nobody knows may be passed over
  server.on("checkExpectation", (request, response) => server.emit("request", request, response))
  return server
}

/**
 * What is no request never reaches the routes, and still is answered as a problem: after the answers
 * to the whole requests before it on the connection, else in place of the broken one's. ADR 0090.
 */
const answerBrokenRequests = (server: Server, last: LastAnswers): void => {
  const broken = new WeakSet<Duplex>()
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
    `Traceparent: ${traceOf({}).traceparent}`,
    "Connection: close",
    "",
    text
  ].join("\r\n")
}
