import { bounded } from "./Clock.ts"
import type { ClientClock } from "./Clock.ts"
import { ConnectionError, errorOf, GatewayError } from "./Errors.ts"
import { isRetried, isTransient, retryDelay } from "./Retry.ts"

/** The settings of a client. Each request can override them. */
export interface RequestOptions {
  /**
   * Aborts the request, which then rejects with the signal's reason. Whether an aborted create took effect is unknown.
   */
  readonly signal?: AbortSignal | undefined
  /** The timeout of each attempt in milliseconds. Default 60,000. */
  readonly timeout?: number | undefined
  /** The maximum number of retries. Default 4. A request that could take effect twice is not retried. ADR 0218 */
  readonly maxRetries?: number | undefined
}

export interface ClientRequest extends RequestOptions {
  readonly method: string
  /** Includes the query, but not the address of the gateway. */
  readonly path: string
  readonly headers?: Readonly<Record<string, string>> | undefined
  /** The body, which is the same in each attempt. */
  readonly body?: string | FormData | undefined
  readonly idempotencyKey?: string | undefined
  /** Whether it may be sent twice. For a POST this requires an idempotency key and a route that supports it. */
  readonly isRepeatable: boolean
}

export interface Reply {
  readonly status: number
  readonly headers: Headers
  /** Parsed JSON, or else text; `undefined` if there is no body. */
  readonly body: unknown
}

export interface TransportOptions {
  readonly baseUrl: string
  readonly apiKey: string
  readonly fetch: (url: string, init: RequestInit) => Promise<Response>
  readonly clock: ClientClock
  readonly random: () => number
  readonly defaults: RequestOptions
}

const timeoutDefault = 60_000
const maxRetriesDefault = 4

type Attempt =
  | { readonly reply: Reply; readonly error?: never; readonly isFinal?: never }
  | { readonly reply?: never; readonly error: GatewayError; readonly isFinal: boolean }

/** The message of a failed `fetch` and of its cause, which on Node contains the system's error code. */
export const reasonOf = (cause: unknown): string => {
  if (!(cause instanceof Error)) return String(cause)
  const inner = cause.cause instanceof Error ? `: ${cause.cause.message}` : ""
  return `${cause.message}${inner}`
}

const bodyOf = async (response: Response): Promise<unknown> => {
  const text = await response.text()
  if (/\bjson\b/u.test(response.headers.get("content-type") ?? "")) {
    try {
      return JSON.parse(text)
    } catch (cause) {
      // A refusal is known by its status, but a success may have been cut off
      if (response.ok) throw cause
    }
  }
  return text === "" ? undefined : text
}

const removed: Reply = { status: 204, headers: new Headers(), body: undefined }

/** Sends requests and retries those that cannot take effect twice. */
export class Transport {
  readonly clock: ClientClock
  readonly #options: TransportOptions

  constructor(options: TransportOptions) {
    this.clock = options.clock
    this.#options = options
  }

  /**
   * Returns a successful response completely. Rejects with a `GatewayError`, with the reason of the signal, or with a
   * `TypeError` for an invalid header.
   */
  async send(request: ClientRequest): Promise<Reply> {
    this.#checkHeaders(request)
    const { idempotencyKey, isRepeatable, method } = request
    const { maxRetries, signal } = this.settings(request)
    // Whether it is unknown if an earlier attempt took effect
    let isUnclear = false
    for (let retry = 0; ; retry += 1) {
      const { error, isFinal, reply } = await this.#attempt(request)
      if (reply !== undefined) return reply
      const { retryAfter, status } = error
      if (isUnclear && status === 404 && method === "DELETE") return removed
      const isUnderWay = isUnclear && idempotencyKey !== undefined
      const failed = { isRepeatable, isFinal, isUnderWay, retryAfter, status }
      if (retry >= maxRetries || !isRetried(failed)) {
        const isRefused = status >= 400 && status < 500
        throw isUnclear && isRefused && isTransient(status, isUnderWay)
          ? this.#lost(request, error.message, error)
          : error
      }
      isUnclear ||= status === 0 || (status >= 500 && status !== 503)
      await this.backOff(retry, retryAfter, signal)
    }
  }

  /**
   * Returns a successful response whose body is unread, such as a stream. Sends only once. The timeout applies until
   * the headers arrive. Rejects like `send`.
   */
  async open(request: ClientRequest, closing: AbortSignal): Promise<Response> {
    this.#checkHeaders(request)
    try {
      return await this.#within(request, async () => {
        const response = await this.#fetch(request, closing)
        if (response.ok) return response
        throw this.#refusal(request, response, await bodyOf(response))
      })
    } catch (cause) {
      throw this.#failure(request, cause)
    }
  }

  /** Waits before the next attempt. `retry` counts from 0. */
  backOff(
    retry: number,
    retryAfter: number | undefined,
    signal: AbortSignal | undefined
  ): Promise<void> {
    return this.sleep(retryDelay(retry, retryAfter, this.#options.random()), signal)
  }

  /** Waits, or rejects with the reason of the signal. */
  sleep(milliseconds: number, signal: AbortSignal | undefined): Promise<void> {
    const bounds = { clock: this.clock, signal, timeout: undefined, late: () => undefined }
    return bounded(bounds, (ended) => this.clock.sleep(milliseconds, ended))
  }

  /** The settings of a request, with those of the client as defaults. */
  settings(options: RequestOptions) {
    const { defaults } = this.#options
    return {
      signal: options.signal ?? defaults.signal,
      timeout: options.timeout ?? defaults.timeout ?? timeoutDefault,
      maxRetries: options.maxRetries ?? defaults.maxRetries ?? maxRetriesDefault
    }
  }

  async #attempt(request: ClientRequest): Promise<Attempt> {
    try {
      return await this.#within(request, async (signal) => {
        const response = await this.#fetch(request, signal)
        const { headers, ok, status, type } = response
        const body = await bodyOf(response)
        if (ok) return { reply: { status, headers, body } }
        const error = this.#refusal(request, response, body)
        const isFinal = type === "opaqueredirect" || headers.get("x-should-retry") === "false"
        return { error, isFinal }
      })
    } catch (cause) {
      return { error: this.#failure(request, cause), isFinal: false }
    }
  }

  /** Throws the signal's reason if it has aborted; otherwise returns the error. */
  #failure(request: ClientRequest, cause: unknown): GatewayError {
    this.settings(request).signal?.throwIfAborted()
    return cause instanceof GatewayError ? cause : this.#lost(request, reasonOf(cause), cause)
  }

  #refusal({ idempotencyKey }: ClientRequest, response: Response, body: unknown) {
    return errorOf(response, body, { now: this.clock.now(), idempotencyKey })
  }

  #within<A>(request: ClientRequest, work: (signal: AbortSignal) => Promise<A>): Promise<A> {
    const { signal, timeout } = this.settings(request)
    const late = () => this.#lost(request, `no response within ${timeout} ms`)
    return bounded({ clock: this.clock, signal, timeout, late }, work)
  }

  #headersOf({ body, headers: own, idempotencyKey }: ClientRequest): Record<string, string> {
    const headers: Record<string, string> = {
      ...own,
      authorization: `Bearer ${this.#options.apiKey}`
    }
    // `fetch` sets the content type of a form, because it includes the boundary
    if (typeof body === "string") headers["content-type"] ??= "application/json"
    if (idempotencyKey !== undefined) headers["idempotency-key"] = idempotencyKey
    return headers
  }

  /**
   * Rejects invalid headers before the first attempt, because the error of `fetch` looks like a lost connection and
   * would be retried.
   */
  #checkHeaders(request: ClientRequest): Headers {
    return new Headers(this.#headersOf(request))
  }

  #fetch(request: ClientRequest, signal: AbortSignal): Promise<Response> {
    const { baseUrl, fetch } = this.#options
    return fetch(`${baseUrl}${request.path}`, {
      method: request.method,
      headers: this.#headersOf(request),
      // Following a redirect would send the key to another host
      redirect: "manual",
      signal,
      ...(request.body === undefined ? {} : { body: request.body })
    })
  }

  #lost(request: ClientRequest, why: string, cause?: unknown): ConnectionError {
    const { host } = new URL(this.#options.baseUrl)
    return new ConnectionError(
      {
        status: 0,
        title: `No response from ${host}`,
        detail: why,
        idempotencyKey: request.idempotencyKey
      },
      cause
    )
  }
}
