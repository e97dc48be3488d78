import { errors } from "undici"
import type { Dispatcher } from "undici"
import { webhookResponseBytesMax } from "../domain/limits/Limits.ts"
import type { AttemptOutcome, FailureClass } from "../domain/Webhook.ts"
import { ConnectionFailed, NameNotResolved, PeerHandler } from "../egress/EgressConnector.ts"
import { EgressRefused } from "../egress/EgressRules.ts"

/**
 * One attempt as an undici handler: reads the response's status and the first 16 KiB of its body, then ends. Settles
 * once; the status decides whether the attempt succeeded. Different from `VendorHttp`'s exchange, for which a truncated
 * body is not a response. docs/reference/webhooks.md#delivery
 */
export class WebhookExchange extends PeerHandler implements Dispatcher.DispatchHandler {
  #settle: (outcome: AttemptOutcome) => void = () => {}
  #outcome: AttemptOutcome | undefined
  #controller: Dispatcher.DispatchController | undefined
  #status: number | undefined
  #location: string | undefined
  #chunks: Array<Uint8Array> = []
  #bytes = 0
  #done = false

  /**
   * Registers the callback for the outcome, called as soon as the connection is closed or free for the next request. It
   * is called at most once, and not after `abort`.
   */
  onSettled(settle: (outcome: AttemptOutcome) => void): void {
    this.#settle = settle
  }

  /** Ends the attempt: nothing more is sent or read, and the connection is closed. */
  abort(): void {
    this.#settle = () => {}
    this.#close()
  }

  /** Called at the attempt's timeout. A status that was received before still counts. */
  expire(timeoutMillis: number): void {
    if (this.#done) return this.#notify()
    this.#finish(
      this.#status === undefined ? this.#timedOut(timeoutMillis) : this.#outcomeOf(this.#status)
    )
    this.#close()
  }

  #timedOut(timeoutMillis: number): AttemptOutcome {
    const phase = this.#controller === undefined ? "no connection" : "no response"
    return failed("timeout", `${phase} within ${timeoutMillis / 1000} s`, this.#address())
  }

  #close(): void {
    this.#done = true
    this.#controller?.abort(new errors.RequestAbortedError())
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller
    if (this.#done) controller.abort(new errors.RequestAbortedError())
  }

  onResponseStart(
    _controller: Dispatcher.DispatchController,
    status: number,
    headers: Readonly<Record<string, string | Array<string> | undefined>>
  ): void {
    // An informational response (1xx) is not the final response
    if (status < 200) return
    this.#status = status
    this.#location = [headers["location"]].flat()[0]
  }

  onResponseData(_controller: Dispatcher.DispatchController, chunk: Uint8Array): void {
    if (this.#done || this.#status === undefined) return
    // Copied, because the parser may reuse the memory of the chunk
    this.#chunks.push(chunk.slice(0, webhookResponseBytesMax + 1 - this.#bytes))
    this.#bytes += chunk.length
    if (this.#bytes > webhookResponseBytesMax) {
      this.#finish(this.#outcomeOf(this.#status))
      this.#close()
    }
  }

  onResponseEnd(): void {
    if (this.#status !== undefined) this.#finish(this.#outcomeOf(this.#status))
  }

  onResponseError(_controller: unknown, error: Error): void {
    this.#finish(
      this.#status === undefined ? failureOf(error, this.#address()) : this.#outcomeOf(this.#status)
    )
  }

  #finish(outcome: AttemptOutcome): void {
    if (this.#done) return
    this.#done = true
    this.#outcome = outcome
    // Outside the parser's step, because only after it is decided whether the connection stays open
    queueMicrotask(() => {
      const socket = this.#controller === undefined ? undefined : this.peer.socket
      if (socket?.destroyed !== true) this.#notify()
      else socket.once("close", () => this.#notify())
    })
  }

  #notify(): void {
    const outcome = this.#outcome
    this.#outcome = undefined
    if (outcome !== undefined) this.#settle(outcome)
  }

  #address(): string | null {
    return this.#controller === undefined ? null : this.peer.remoteAddress
  }

  #outcomeOf(status: number): AttemptOutcome {
    const answer = bodyText(this.#chunks)
    const remoteAddress = this.#address()
    if (status < 300) return { status, failure: null, detail: null, answer, remoteAddress }
    if (status < 400) {
      const detail = `HTTP ${status}${originOf(this.#location)}: redirects are not followed`
      return { status, failure: "redirect", detail, answer, remoteAddress }
    }
    return { status, failure: "http_status", detail: `HTTP ${status}`, answer, remoteAddress }
  }
}

/** The outcome of an attempt without a response. The detail is cut to its first line. */
export const failed = (
  failure: FailureClass,
  detail: string,
  remoteAddress: string | null = null
): AttemptOutcome => ({
  status: null,
  failure,
  detail: detail.replaceAll(/\s+/gu, " ").slice(0, detailCharactersMax),
  answer: null,
  remoteAddress
})

const detailCharactersMax = 300

/** Does not name the address: the tenant can read the log, and the address may be internal. */
export const blocked = failed("blocked", "the address is not allowed")

const failureOf = (error: Error, address: string | null): AttemptOutcome =>
  error instanceof EgressRefused ? blocked : failed(failureClass(error), error.message, address)

const failureClass = (error: Error): FailureClass => {
  if (error instanceof NameNotResolved) return "dns"
  if (error instanceof ConnectionFailed) return error.timedOut ? "timeout" : error.phase
  return error instanceof errors.HeadersTimeoutError ? "timeout" : "protocol"
}

/**
 * The first 16 KiB as text. A character that was cut off at the end is dropped, and U+0000, which Postgres cannot store
 * in a text, is replaced. Replacements may be longer than what they replace, hence the second cut.
 */
const bodyText = (chunks: ReadonlyArray<Uint8Array>): string => {
  const [first = noBytes] = chunks
  const bytes = chunks.length <= 1 ? first : Buffer.concat(chunks)
  const isCut = bytes.length > webhookResponseBytesMax
  const decoded = isCut
    ? new TextDecoder().decode(bytes.subarray(0, webhookResponseBytesMax), { stream: true })
    : decoder.decode(bytes)
  const text = decoded.replaceAll("\u0000", "\uFFFD")
  if (!text.includes("\uFFFD")) return text
  const { read } = new TextEncoder().encodeInto(text, new Uint8Array(webhookResponseBytesMax))
  return text.slice(0, read)
}

const noBytes = new Uint8Array()
const decoder = new TextDecoder()

/** The origin of a redirect's target. Its path and query are omitted, because they may contain secrets. */
const originOf = (location: string | undefined): string => {
  const url = location === undefined ? null : URL.parse(location)
  return url === null ? "" : ` to ${url.origin}`
}
