import { Clock, Duration, Effect, Record, Schema, Scope } from "effect"
import type { Readable } from "node:stream"
import { Agent, errors } from "undici"
import type { buildConnector, Dispatcher } from "undici"
import { makeDeadlines } from "../domain/Deadlines.ts"
import type { Deadline } from "../domain/Deadlines.ts"
import { SingleConnections } from "./upstream/SingleConnections.ts"

/** There was no response. `sent` is false only if certainly no byte of the request was sent. */
export class NoResponse extends Schema.TaggedError<NoResponse>()("NoResponse", {
  sent: Schema.Boolean,
  message: Schema.String
}) {}

export interface VendorRequest {
  readonly method: "GET" | "POST" | "PUT" | "DELETE"
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  /** A stream is sent as it is read; `headers` must contain its `content-length`. */
  readonly body?: string | Uint8Array | Readable
  /** The timeout of the whole exchange. */
  readonly timeout: Duration.Duration
  /** A larger response is an error. */
  readonly bytesMax?: number
  /** Stops reading a successful response once its text matches: used to read only the beginning of a stream. */
  readonly until?: RegExp
}

export interface VendorResponse {
  readonly status: number
  /** Lower-case names; for a repeated header, its first value. */
  readonly headers: Readonly<Record<string, string>>
  readonly body: Uint8Array
}

export const isOk = ({ status }: Pick<VendorResponse, "status">): boolean =>
  status >= 200 && status < 300

/** One HTTP exchange. It retries nothing and follows no redirect. */
export type VendorHttp = (call: VendorRequest) => Effect.Effect<VendorResponse, NoResponse>

/** Inline results are Base64: a 4K image has about 30 MB. */
const responseBytesMax = 128 * 1024 * 1024

export const connectMillis = 15_000

/**
 * GETs reuse connections. Every other request opens its own, because a stale connection that breaks
 * during a paid submit would make it ambiguous. ADR 0080.
 */
export const make = Effect.fnUntraced(function* (
  options: {
    /** PEM certificates trusted instead of the system's, for tests. */
    readonly ca?: string
    /** Opens the connections. */
    readonly connector?: buildConnector.connector
    /** Sends all requests through this dispatcher instead of own connections. */
    readonly dispatcher?: Dispatcher
  } = {}
): Effect.fn.Return<VendorHttp, never, Scope.Scope> {
  const { connector, dispatcher, ...trusted } = options
  const reused = yield* Effect.acquireRelease(
    Effect.sync(
      () =>
        new Agent({
          headersTimeout: 0,
          bodyTimeout: 0,
          allowH2: false,
          connections: 32,
          connect: connector ?? { timeout: connectMillis, ...trusted }
        })
    ),
    (agent) => Effect.promise(() => agent.destroy())
  )
  const single = yield* Effect.acquireRelease(
    Effect.sync(() => new SingleConnections({ connectMillis, connector, ...trusted })),
    (connections) => Effect.sync(() => connections.closeAll())
  )
  const scope = yield* Effect.scope
  const deadlines = new Map<number, Deadline>()
  const makeDeadline = (timeout: Duration.Duration): Effect.Effect<Deadline> =>
    Effect.tap(Scope.provide(makeDeadlines(timeout), scope), (made) =>
      Effect.sync(() => deadlines.set(Duration.toMillis(timeout), made))
    )
  const perform = (call: VendorRequest, deadline: Deadline, clock: Clock.Clock) => {
    const url = new URL(call.url)
    const exchange = new Exchange(call)
    if (dispatcher !== undefined) return exchange.outcome(dispatcher, url, deadline, clock)
    if (call.method === "GET") return exchange.outcome(reused, url, deadline, clock)
    const client = single.open(url)
    return Effect.onExit(exchange.outcome(client, url, deadline, clock), () =>
      Effect.sync(() => single.close(client))
    )
  }
  return (call) =>
    Clock.clockWith((clock) => {
      const deadline = deadlines.get(Duration.toMillis(call.timeout))
      return deadline === undefined
        ? Effect.flatMap(makeDeadline(call.timeout), (made) => perform(call, made, clock))
        : perform(call, deadline, clock)
    })
})

/**
 * One exchange as an undici handler. It settles once, with a whole body or with a failure that says whether the request
 * was sent. Relayed responses (`UpstreamExchange`) and webhooks (`WebhookExchange`) have other rules for when they end,
 * so they have their own handlers.
 */
class Exchange implements Dispatcher.DispatchHandler {
  readonly #call: VendorRequest
  #settle: (outcome: Effect.Effect<VendorResponse, NoResponse>) => void = () => {}
  #endDeadline: () => void = () => {}
  #controller: Dispatcher.DispatchController | undefined
  #status: number | undefined
  #headers: Readonly<Record<string, string>> = {}
  readonly #chunks: Array<Uint8Array> = []
  #bytes = 0
  #done = false

  constructor(call: VendorRequest) {
    this.#call = call
  }

  outcome(
    dispatcher: Dispatcher,
    url: URL,
    deadline: Deadline,
    clock: Clock.Clock
  ): Effect.Effect<VendorResponse, NoResponse> {
    return Effect.callback((resume) => {
      this.#settle = resume
      // Effect.timeout would interrupt, and a paid submit is uninterruptible
      this.#endDeadline = deadline(clock, () => this.#expire())
      this.#dispatch(dispatcher, url)
      return Effect.sync(() => this.#abort())
    })
  }

  #expire(): void {
    this.#fail(`no response within ${Duration.toSeconds(this.#call.timeout)} s`)
  }

  #dispatch(dispatcher: Dispatcher, url: URL): void {
    dispatcher.dispatch(
      {
        origin: url.origin,
        path: `${url.pathname}${url.search}`,
        method: this.#call.method,
        headers: this.#call.headers,
        body: this.#call.body ?? null
      },
      this
    )
  }

  #abort(): void {
    this.#done = true
    this.#endDeadline()
    this.#controller?.abort(new errors.RequestAbortedError())
  }

  /** The connection is open, and the request is about to be written. */
  onRequestStart(controller: Dispatcher.DispatchController): void {
    if (this.#done) controller.abort(new errors.RequestAbortedError())
    else this.#controller = controller
  }

  onResponseStart(
    _controller: Dispatcher.DispatchController,
    status: number,
    headers: Headers
  ): void {
    if (status < 200) return
    this.#status = status
    this.#headers = areSingle(headers) ? headers : firstValues(headers)
  }

  onResponseData(_controller: Dispatcher.DispatchController, chunk: Uint8Array): void {
    if (this.#done || this.#status === undefined) return
    this.#chunks.push(chunk.slice())
    this.#bytes += chunk.length
    const most = this.#call.bytesMax ?? responseBytesMax
    if (this.#bytes > most) return this.#fail(`the response is larger than ${most} bytes`)
    const { until } = this.#call
    if (until === undefined || this.#status >= 300) return
    if (until.test(Buffer.concat(this.#chunks).toString("utf8"))) {
      this.onResponseEnd()
      this.#controller?.abort(new errors.RequestAbortedError())
    }
  }

  onResponseEnd(): void {
    if (this.#status === undefined) return this.#fail("no response")
    const response = {
      status: this.#status,
      headers: this.#headers,
      body: Buffer.concat(this.#chunks)
    }
    this.#finish(Effect.succeed(response))
  }

  onResponseError(_controller: unknown, error: Error): void {
    this.#fail(textOf(error))
  }

  #fail(message: string): void {
    const sent = this.#controller !== undefined
    this.#finish(Effect.fail(new NoResponse({ sent, message })))
    this.#controller?.abort(new errors.RequestAbortedError())
  }

  #finish(outcome: Effect.Effect<VendorResponse, NoResponse>): void {
    if (this.#done) return
    this.#done = true
    this.#endDeadline()
    // Deferred, so that the continuation does not run inside the parser
    queueMicrotask(() => this.#settle(outcome))
  }
}

type Headers = Readonly<Record<string, string | Array<string> | undefined>>

const areSingle = (headers: Headers): headers is Readonly<Record<string, string>> => {
  for (const name in headers) if (typeof headers[name] !== "string") return false
  return true
}

const firstValues = (headers: Headers): Readonly<Record<string, string>> =>
  Record.map(headers, (value) => (typeof value === "object" ? value[0] : value) ?? "")

/** When several addresses were tried, Node reports an AggregateError without a message. */
const textOf = (error: Error): string => {
  const first: unknown = error instanceof AggregateError ? error.errors[0] : error
  return first instanceof Error ? first.message : error.name
}
