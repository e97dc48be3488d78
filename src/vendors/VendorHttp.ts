import { Duration, Effect, Fiber, Schema } from "effect"
import type { Scope } from "effect"
import { Agent, errors } from "undici"
import type { Dispatcher } from "undici"

/** No answer came. `sent` is false only when certainly no byte of the request left. */
export class NoAnswer extends Schema.TaggedError<NoAnswer>()("NoAnswer", {
  sent: Schema.Boolean,
  timedOut: Schema.Boolean,
  message: Schema.String
}) {}

export interface VendorCall {
  readonly method: "GET" | "POST" | "PUT"
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly body?: string | Uint8Array
  /** Bound on the whole exchange. */
  readonly timeout: Duration.Duration
  /** A larger answer is given up. Bytes. */
  readonly bytesMax?: number
}

export interface VendorAnswer {
  readonly status: number
  /** Names in lower case; of a repeated header the first value. */
  readonly headers: Readonly<Record<string, string>>
  readonly body: Uint8Array
}

/** One HTTP exchange with a vendor. Nothing is repeated and no redirect is followed. */
export type VendorHttp = (call: VendorCall) => Effect.Effect<VendorAnswer, NoAnswer>

/** Inline results come as Base64: a 4K picture is some 30 MB of it. */
const answerBytesMax = 128 * 1024 * 1024

/**
 * Two sets of connections: questions keep theirs alive; every POST opens its own, so that a stale
 * connection cannot break under a paid submit and make it ambiguous. ADR 0080.
 */
export const make: Effect.Effect<VendorHttp, never, Scope.Scope> = Effect.gen(function* () {
  const open = (options: Agent.Options) =>
    Effect.acquireRelease(
      Effect.sync(() => new Agent(options)),
      (agent) => Effect.promise(() => agent.destroy())
    )
  const connect = { timeout: Duration.toMillis("15 seconds") }
  const bounds = { headersTimeout: 0, bodyTimeout: 0, allowH2: false, connect }
  const asking = yield* open({ ...bounds, connections: 32 })
  const paying = yield* open({ ...bounds, pipelining: 0 })
  return Effect.fnUntraced(function* (call: VendorCall) {
    const exchange = new Exchange(call)
    // Beside it, for Effect's own time-outs interrupt, and a paid submit cannot be interrupted
    const watch = yield* Effect.forkDetach(
      Effect.andThen(
        Effect.sleep(call.timeout),
        Effect.sync(() => exchange.expire())
      )
    )
    return yield* exchange
      .outcome(call.method === "GET" ? asking : paying)
      .pipe(Effect.ensuring(Fiber.interrupt(watch)))
  })
})

/** One exchange on the wire, from undici's point of view. It settles once. */
class Exchange implements Dispatcher.DispatchHandler {
  readonly #call: VendorCall
  #settle: (outcome: Effect.Effect<VendorAnswer, NoAnswer>) => void = () => {}
  #controller: Dispatcher.DispatchController | undefined
  #status: number | undefined
  #headers: Record<string, string> = {}
  readonly #chunks: Array<Uint8Array> = []
  #bytes = 0
  #done = false

  constructor(call: VendorCall) {
    this.#call = call
  }

  outcome(agent: Agent): Effect.Effect<VendorAnswer, NoAnswer> {
    return Effect.callback((resume) => {
      this.#settle = resume
      this.#dispatch(agent)
      return Effect.sync(() => this.#abort())
    })
  }

  /** The time of the exchange is over. */
  expire(): void {
    this.#giveUp(`no answer within ${Duration.toSeconds(this.#call.timeout)} s`, true)
  }

  #dispatch(agent: Agent): void {
    const url = new URL(this.#call.url)
    agent.dispatch(
      {
        origin: url.origin,
        path: `${url.pathname}${url.search}`,
        method: this.#call.method,
        headers: { ...this.#call.headers },
        body: this.#call.body ?? null
      },
      this
    )
  }

  #abort(): void {
    this.#done = true
    this.#controller?.abort(new errors.RequestAbortedError())
  }

  /** The connection stands, and the request is about to be written to it. */
  onRequestStart(controller: Dispatcher.DispatchController): void {
    if (this.#done) controller.abort(new errors.RequestAbortedError())
    else this.#controller = controller
  }

  onResponseStart(
    _controller: Dispatcher.DispatchController,
    status: number,
    headers: Readonly<Record<string, string | Array<string> | undefined>>
  ): void {
    if (status < 200) return
    this.#status = status
    this.#headers = Object.fromEntries(
      Object.entries(headers).map(([name, value]) => [name, [value].flat()[0] ?? ""])
    )
  }

  onResponseData(_controller: Dispatcher.DispatchController, chunk: Uint8Array): void {
    if (this.#done || this.#status === undefined) return
    this.#chunks.push(chunk.slice())
    this.#bytes += chunk.length
    const most = this.#call.bytesMax ?? answerBytesMax
    if (this.#bytes > most) this.#giveUp(`the answer is larger than ${most} bytes`, false)
  }

  onResponseEnd(): void {
    if (this.#status === undefined) return this.#giveUp("no answer", false)
    const answer = {
      status: this.#status,
      headers: this.#headers,
      body: Buffer.concat(this.#chunks)
    }
    this.#finish(Effect.succeed(answer))
  }

  onResponseError(_controller: unknown, error: Error): void {
    this.#giveUp(textOf(error), error instanceof errors.ConnectTimeoutError)
  }

  #giveUp(message: string, timedOut: boolean): void {
    const sent = this.#controller !== undefined
    this.#finish(Effect.fail(new NoAnswer({ sent, timedOut, message })))
    this.#controller?.abort(new errors.RequestAbortedError())
  }

  #finish(outcome: Effect.Effect<VendorAnswer, NoAnswer>): void {
    if (this.#done) return
    this.#done = true
    // Later, so that what follows never runs inside the parser.
    queueMicrotask(() => this.#settle(outcome))
  }
}

/** With several addresses tried Node reports an AggregateError without a text of its own. */
const textOf = (error: Error): string => {
  const first: unknown = error instanceof AggregateError ? error.errors[0] : error
  return first instanceof Error ? first.message : error.name
}
