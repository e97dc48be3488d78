import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import { Context, Duration, Effect, Layer } from "effect"
import type { Scope } from "effect"
import { createServer, IncomingMessage, ServerResponse, STATUS_CODES } from "node:http"
import type { Server } from "node:http"
import type { Duplex } from "node:stream"
import { problem } from "../../../domain/Problem.ts"
import type { Problem } from "../../../domain/Problem.ts"
import { Admission, makeAdmission } from "../../../process/admission/Admission.ts"
import type { AdmissionService } from "../../../process/admission/Admission.ts"
import { ProcessGroup } from "../../../process/ProcessGroup.ts"
import { placeOf } from "../../passthrough/PassthroughTarget.ts"
import { renderProblem } from "../problems/Problems.ts"
import { addAcceptors, backlogMax, isFree, listeningSockets, sharesPorts } from "./Acceptors.ts"
import { CallerTurns } from "./CallerTurns.ts"
import { makeListenerDrain } from "./ListenerDrain.ts"
import type { ListenerDrain } from "./ListenerDrain.ts"
import { makeOverloadGuard } from "./OverloadGuard.ts"
import { RefusedCallers } from "./RefusedCallers.ts"
import { makeRequestCaller } from "./RequestCaller.ts"
import type { RequestCaller } from "./RequestCaller.ts"
import { measureRequest } from "./RequestMetrics.ts"
import { traceOf } from "./RequestTrace.ts"

/** Limits on the time and size of a request before it reaches the routes. ADR 0110. */
export interface ListenerBounds {
  /** The time from the first byte to the end of the headers, in milliseconds. */
  readonly headersMillis: number
  /** The time from the first byte to the end of the body, in milliseconds. */
  readonly requestMillis: number
  /** How long a connection may stay idle before it is closed, in milliseconds. */
  readonly idleMillis: number
  /** How often the first two limits are checked, in milliseconds. */
  readonly checkMillis: number
  /** The size of all headers together, in bytes. A larger request gets a 431. */
  readonly headersBytesMax: number
  /** The maximum number of open connections. Further ones are closed at once. */
  readonly connectionsMax: number
}

/**
 * 128 MiB of Base64 arrive within five minutes at 4 Mbit/s. Idle connections stay open longer than the 60 s of common
 * load balancers, so that the load balancer closes them first.
 */
export const listenerBounds: ListenerBounds = {
  headersMillis: 15_000,
  requestMillis: 300_000,
  idleMillis: 65_000,
  checkMillis: 5000,
  headersBytesMax: 16 * 1024,
  connectionsMax: 10_000
}

/** Sees each request before the routes do. Returns `true` if it handles the request itself. */
export type Interceptor = (request: IncomingMessage, response: ServerResponse) => boolean

/** Node's server, with an interceptor in front of the routes. ADR 0113. */
export class Listener extends Context.Service<
  Listener,
  {
    /** The server, for the routes. */
    readonly server: Server
    /** Installs the interceptor until the scope closes. */
    readonly intercept: (interceptor: Interceptor) => Effect.Effect<void, never, Scope.Scope>
    /** Closes connections when the process stops, after which nothing is left to wait for. */
    readonly drain: ListenerDrain
  }
>()("gateway/http/server/Listener") {
  static readonly layer = (bounds?: ListenerBounds) =>
    Layer.effect(
      Listener,
      Effect.gen(function* () {
        return makeListener(bounds, yield* Admission, yield* makeRequestCaller)
      })
    )

  /** An HTTP server on this address. */
  static readonly listen = (
    address: { readonly host: string; readonly port: number },
    bounds?: ListenerBounds
  ) =>
    Layer.unwrap(
      Effect.gen(function* () {
        const { server } = yield* Listener
        const { inherited, joins, onListening } = yield* ProcessGroup
        const reusePort = sharesPorts && (joins || (yield* Effect.promise(() => isFree(address))))
        const [handle, ...others] = inherited
        if (reusePort) addAcceptors(server, others)
        onListening(listeningSockets(server))
        const options = {
          ...address,
          ...(handle === undefined ? { reusePort } : { handle }),
          backlog: backlogMax,
          gracefulShutdownTimeout: gracefulShutdown
        }
        return NodeHttpServer.layer(() => server, options)
      })
    ).pipe(Layer.provideMerge(Listener.layer(bounds)))
}

/** How long running requests may take, unless `drain` has already waited for them. */
const gracefulShutdown = Duration.seconds(5)

/** The response to the latest request of each connection. */
type LastResponses = WeakMap<Duplex, ServerResponse>

export const makeListener = (
  bounds: ListenerBounds = listenerBounds,
  admission: AdmissionService = makeAdmission(),
  callerOf: RequestCaller = () => ""
): Listener["Service"] => {
  const server = makeServer(bounds)
  const admit = makeOverloadGuard(admission, callerOf, (response) => refuse(response, overloaded))
  const refusedCallers = new RefusedCallers()
  const turns = new CallerTurns()
  const last: LastResponses = new WeakMap()
  const drain = makeListenerDrain(server, last)
  respondToMalformedRequests(server, last)
  const emit = server.emit.bind(server)
  let interceptor: Interceptor = () => false
  // An event reaches all of its listeners, so only here can a request be kept from the routes
  server.emit = (event: string, ...args: ReadonlyArray<unknown>): boolean => {
    const [request, response] = args
    if (
      // With a listener, as the routes add one, a request with `Expect: 100-continue` emits `checkContinue` instead
      (event === "request" || event === "checkContinue") &&
      request instanceof IncomingMessage &&
      response instanceof ServerResponse
    ) {
      measureRequest(request, response)
      drain.onRequest(request, response)
      if (event === "checkContinue") continuing.set(request, response)
      const start = () => {
        if (!admit(request, response) || interceptor(request, response)) return
        emit(event, ...args)
      }
      const caller = callerOf(request)
      const inTurn = () => turns.run(caller, response, start)
      if (!refusedCallers.run(caller, response, inTurn)) refuse(response, overloaded)
      return true
    }
    return emit(event, ...args)
  }
  const install = (next: Interceptor) =>
    Effect.sync(() => {
      interceptor = next
    })
  return {
    server,
    drain,
    intercept: (next) => Effect.acquireRelease(install(next), () => install(() => false))
  }
}

const servers = new WeakMap<Duplex, Server>()

/** The responses of requests that wait for `100 Continue` before sending their body. */
const continuing = new WeakMap<IncomingMessage, ServerResponse>()

/** Tells a client to send the body that it announced. */
export const sendContinue = (request: IncomingMessage): void => {
  const response = continuing.get(request)
  if (response === undefined) return
  continuing.delete(request)
  if (!response.headersSent) response.writeContinue()
}

/** Responds with 408 to a request whose body does not arrive, and closes its connection. */
export const expireRequest = (request: IncomingMessage | undefined): void => {
  const socket = request?.socket
  const fault = Object.assign(new Error("The body did not arrive"), { code: timedOutCode })
  if (socket !== undefined) servers.get(socket)?.emit("clientError", fault, socket)
}

const timedOutCode = "ERR_HTTP_REQUEST_TIMEOUT"

/**
 * Node's server with every limit set: a slow request gets a 408, too large headers a 431, malformed HTTP a 400, and
 * each closes the connection. Uses the strict parser.
 */
const makeServer = (bounds: ListenerBounds): Server => {
  const server = createServer({
    headersTimeout: bounds.headersMillis,
    requestTimeout: bounds.requestMillis,
    keepAliveTimeout: bounds.idleMillis,
    connectionsCheckingInterval: bounds.checkMillis,
    maxHeaderSize: bounds.headersBytesMax,
    insecureHTTPParser: false,
    // Off, because `GlobalMiddleware` responds with a problem
    requireHostHeader: false,
    // RFC 9110, 7.8: an upgrade offer may be ignored. With an `upgrade` listener Node would accept it and lose the body
    shouldUpgradeCallback: () => false
  })
  let open = 0
  server.on("connection", (socket: Duplex) => {
    servers.set(socket, server)
    open += 1
    socket.once("close", () => {
      open -= 1
    })
    if (open > bounds.connectionsMax) socket.destroy()
  })
  // Without a listener Node closes the connection without a response
  server.on("connect", (_request, socket: Duplex) =>
    server.emit("clientError", new Error("CONNECT is for proxies"), socket)
  )
  // RFC 9110, 10.1.1: a server may ignore an unknown expectation
  server.on("checkExpectation", (request, response) => server.emit("request", request, response))
  return server
}

/**
 * Responds to malformed requests, which never reach the routes, with a problem. It comes after the responses to
 * complete requests before it on the connection, or replaces the response to its own request. ADR 0110.
 */
const respondToMalformedRequests = (server: Server, last: LastResponses): void => {
  const handled = new WeakSet<Duplex>()
  server.on("clientError", (error: NodeJS.ErrnoException, socket: Duplex) => {
    if (handled.has(socket)) return
    handled.add(socket)
    const respond = (broken?: IncomingMessage) =>
      socket.writable
        ? socket.end(problemText(faultOf(error.code), broken), () => socket.destroy())
        : socket.destroy()
    const running = last.get(socket)
    if (error.code === "ECONNRESET" || !socket.writable) return socket.destroy()
    if (running === undefined || running.writableFinished) return respond()
    if (running.req.complete) return running.once("close", () => respond())
    return running.headersSent ? socket.destroy() : respond(running.req)
  })
}

/**
 * Whether the request has exactly one `Host`, as HTTP/1.1 requires. Node's own refusal has no body. RFC 9112, section
 * 3.2.
 */
export const hasOneHost = (source: object): boolean => {
  if (!(source instanceof IncomingMessage) || source.httpVersion === "1.0") return true
  let hosts = 0
  const { rawHeaders } = source
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at]
    if (name?.length === 4 && name.toLowerCase() === "host") hosts += 1
  }
  return hosts === 1
}

const faultOf = (code: string | undefined): Problem => {
  switch (code) {
    case "HPE_HEADER_OVERFLOW":
      return problem(2016, "The headers are too large")
    case "HPE_CHUNK_EXTENSIONS_OVERFLOW":
      return problem(2004, "The chunk extensions of the body are too large")
    case timedOutCode:
      return problem(2015, "The request did not arrive in time")
    default:
      return problem(2014, "This is not a valid HTTP request")
  }
}

/**
 * Responds with a problem to requests that the end of the process cuts off. Responses that have begun are destroyed.
 */
export const refuseOpen = (open: ReadonlyArray<ServerResponse>): void => {
  for (const response of open) {
    if (response.headersSent) {
      response.destroy()
      continue
    }
    refuse(response, stopping)
  }
}

// Created once, because an error with its stack would cost a tenth of a refusal
const overloaded = problem(5003, "The service is overloaded: try again shortly")
export const stopping = problem(5003, "The process is stopping: try again")

/** Responds with a 503 without reaching the routes. docs/reference/errors.md#headers-of-errors */
const refuse = (response: ServerResponse, fault: Problem): void => {
  const { req } = response
  const place = placeOf(pathOfUrl(req), req.headers)
  const { body, headers, status } = renderProblem(fault, place, traceOf(req.headers))
  response.writeHead(status, {
    ...headers,
    "content-length": Buffer.byteLength(body),
    // The client may then never send the body that it announced
    ...(isExpecting(req) ? { connection: "close" } : {})
  })
  response.end(body)
}

/** Whether the client waits for `100 Continue` before it sends its body. */
export const isExpecting = ({ complete, headers }: IncomingMessage): boolean =>
  headers.expect !== undefined && !complete

export const pathOfUrl = ({ url = "/" }: IncomingMessage): string => {
  const end = url.indexOf("?")
  return end < 0 ? url : url.slice(0, end)
}

/**
 * The whole response as it is written to the socket. `request` is the malformed request, if its headers could be
 * parsed.
 */
const problemText = (fault: Problem, request: IncomingMessage | undefined): string => {
  const path = request === undefined ? "/" : pathOfUrl(request)
  const given = request?.headers ?? {}
  const rendered = renderProblem(fault, placeOf(path, given), traceOf(given))
  const { body, status } = rendered
  const headers = {
    ...rendered.headers,
    date: new Date().toUTCString(),
    "content-length": Buffer.byteLength(body),
    connection: "close"
  }
  return [
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}`,
    ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`),
    "",
    body
  ].join("\r\n")
}
