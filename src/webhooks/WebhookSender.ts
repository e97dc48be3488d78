import { Clock, Context, Duration, Effect, Layer, Schema } from "effect"
import type { Dispatcher } from "undici"
import { webhookPayloadBytesMax, webhookTimeoutSeconds } from "../domain/Limits.ts"
import type { AttemptOutcome } from "../domain/Webhook.ts"
import { EgressGuard } from "../egress/EgressGuard.ts"
import type { EgressRefused } from "../egress/EgressRules.ts"
import { makeDeadlines } from "./Deadlines.ts"
import type { Deadline } from "./Deadlines.ts"
import { OriginGate } from "./OriginGate.ts"
import { deliveryHeaders } from "./Signature.ts"
import { WebhookExchange, failed } from "./WebhookExchange.ts"

/** One attempt of one delivery. Spec, Delivery request. */
export interface WebhookRequest {
  readonly url: string
  /** The endpoint's whole secret string, `whsec_` included. */
  readonly secret: string
  /** Given for 24 hours after a rotation: signs beside the new one. Contract 3. */
  readonly previousSecret?: string | undefined
  /** `whd_…`, the same on every attempt. */
  readonly deliveryId: string
  /** The stored bytes, sent unchanged on every attempt. Contract 8. */
  readonly body: Uint8Array
  /** Unix time of this attempt's signing. Spec, Signature 6. */
  readonly timestampSeconds: number
  /** Unix time after which an attempt that had to wait for a place is not begun any more. */
  readonly beginBeforeMillis?: number | undefined
  /** Called when the attempt has its place, before anything of it is sent. */
  readonly onBegin?: (() => void) | undefined
}

/** The attempt waited for a place at its origin until it was too late for it: nothing was sent. */
export class NoPlace extends Schema.TaggedError<NoPlace>()("NoPlace", {}) {}

export interface WebhookSenderOptions {
  /** The name in the headers, `SERVICE_NAME`. Default `Service` (contract 2). */
  readonly serviceName?: string
  /** Bound on the whole attempt. Default 30 s (spec, Retries; contract 8). */
  readonly timeout?: Duration.Input
  /** Bound on the wait for a place. Default 8 s (ADR 0117). */
  readonly placeTimeout?: Duration.Input
  /** PEM certificates that are trusted in place of the system's, for tests. */
  readonly ca?: string | undefined
  /**
   * Attempts under way to one origin; further ones wait for a place, save the first two of a URL.
   * Default 128.
   */
  readonly connectionsPerOriginMax?: number
}

/** Signs and sends one attempt. Spec, Delivery request, Signature and Retries; contract 8. */
export class WebhookSender extends Context.Service<
  WebhookSender,
  {
    /**
     * Every way to fail is a class of the outcome, save that nothing was begun. Waiting for a place is no
     * part of the attempt, nor of its bound. Interruption aborts the request.
     */
    readonly send: (request: WebhookRequest) => Effect.Effect<AttemptOutcome, NoPlace>
    /** Attempts that may be under way to this URL now, so that none waits long for a place. */
    readonly shareOf: (url: string) => number
  }
>()("gateway/webhooks/WebhookSender") {
  /** Sends over HTTPS through the egress guard. Connections are kept alive and closed with the layer. */
  static readonly layer = (
    options: WebhookSenderOptions = {}
  ): Layer.Layer<WebhookSender, never, EgressGuard> =>
    Layer.effect(WebhookSender, makeWebhookSender(options))

  /**
   * Sends nothing: records each request with the time it came, for `WebhookSenderLog`, and answers
   * by the script, which may wait or never end. Without a script every attempt gets a 200.
   */
  static readonly layerMock = (
    script: (request: WebhookRequest) => Effect.Effect<AttemptOutcome, NoPlace> = () =>
      Effect.succeed(mockOutcome(200)),
    shareOf: (url: string) => number = () => Number.POSITIVE_INFINITY
  ): Layer.Layer<WebhookSender | WebhookSenderLog> =>
    Layer.effectContext(
      Effect.sync(() => {
        const sent: Array<SentRequest> = []
        const send = Effect.fnUntraced(function* ({ onBegin, ...request }: WebhookRequest) {
          // Without what would keep the caller in memory for as long as the log
          sent.push({ request, atMillis: yield* Clock.currentTimeMillis })
          onBegin?.()
          return yield* script(request)
        })
        return Context.make(WebhookSender, { send, shareOf }).pipe(
          Context.add(WebhookSenderLog, { sent: Effect.sync(() => [...sent]) })
        )
      })
    )
}

/** One request that the mock took, and when it came. */
export interface SentRequest {
  readonly request: WebhookRequest
  readonly atMillis: number
}

/** What `WebhookSender.layerMock` was asked to send, oldest first. */
export class WebhookSenderLog extends Context.Service<
  WebhookSenderLog,
  { readonly sent: Effect.Effect<ReadonlyArray<SentRequest>> }
>()("gateway/delivery/WebhookSenderLog") {}

/** The outcome of an answer with this status, for the mock's script. */
export const mockOutcome = (status: number): AttemptOutcome => ({
  status,
  failure: status < 300 ? null : status < 400 ? "redirect" : "http_status",
  detail: status < 300 ? null : `HTTP ${status}`,
  answer: "",
  remoteAddress: "192.0.2.1"
})

/** Where a URL's requests go. */
interface Target {
  readonly url: URL
  readonly origin: string
  readonly path: string
}

/** URLs that the guard judged lately. */
const targetsMax = 1000

/** Then the claim of the attempt is too old to be sent (ADR 0052). */
const placeTimeout = Duration.seconds(8)

/** undici's own timers stand this far behind the bound: Effect's clock decides, they only clean up. */
const backstopMillis = 5000

const makeWebhookSender = Effect.fnUntraced(function* (options: WebhookSenderOptions) {
  const guard = yield* EgressGuard
  const { serviceName = "Service", connectionsPerOriginMax = 128, ca } = options
  const gate = new OriginGate(connectionsPerOriginMax)
  const timeout = Duration.fromInputUnsafe(
    options.timeout ?? Duration.seconds(webhookTimeoutSeconds)
  )
  const timeoutMillis = Duration.toMillis(timeout)
  const dispatcher = yield* guard.dispatcher({
    ca,
    connectTimeoutMillis: timeoutMillis + backstopMillis,
    // The gate bounds them.
    connectionsPerOriginMax: Number.MAX_SAFE_INTEGER,
    onOpened: (origin) => gate.opened(origin)
  })

  const deadline = yield* makeDeadlines(timeout)
  const timeouts = yield* makeDeadlines(
    Duration.fromInputUnsafe(options.placeTimeout ?? placeTimeout)
  )
  const post = makePost({ serviceName, gate, dispatcher, deadline, timeoutMillis, timeouts })
  const targets = new Map<string, Target>()

  /** What the guard says of a URL depends on its text alone; every connect is judged again. */
  const targetOf = (text: string): Effect.Effect<Target, EgressRefused> => {
    const known = targets.get(text)
    if (known !== undefined) return Effect.succeed(known)
    return Effect.map(guard.checkUrl(text, { schemes: ["https"] }), (url) => {
      const target = { url, origin: url.origin, path: `${url.pathname}${url.search}` }
      if (targets.size >= targetsMax) targets.clear()
      targets.set(text, target)
      return target
    })
  }

  const send = (request: WebhookRequest): Effect.Effect<AttemptOutcome, NoPlace> =>
    request.body.byteLength > webhookPayloadBytesMax
      ? Effect.succeed(tooLarge(request.body.byteLength))
      : Effect.clockWith((clock) =>
          targetOf(request.url).pipe(
            Effect.flatMap((target) => post(target, request, clock)),
            Effect.catchTag("EgressRefused", (error) =>
              Effect.succeed(failed("blocked", error.reason))
            )
          )
        )

  const shareOf = (text: string): number => {
    const target = targets.get(text)
    return target === undefined ? connectionsPerOriginMax : gate.shareOf(target.url)
  }

  return { send, shareOf }
})

const noPlace = Effect.fail(new NoPlace())

/** Contract 8: a body above 64 KB is not sent. */
const tooLarge = (bytes: number): AttemptOutcome =>
  failed("payload_too_large", `${bytes} bytes, more than the ${webhookPayloadBytesMax} allowed`)

interface Ways {
  readonly serviceName: string
  readonly gate: OriginGate
  readonly dispatcher: Dispatcher
  /** Bound of an attempt. */
  readonly deadline: Deadline
  readonly timeoutMillis: number
  /** Bound of the wait for a place. */
  readonly timeouts: Deadline
}

/** One attempt: through the gate, onto the wire, and out. */
const makePost = ({ deadline, dispatcher, gate, timeouts, serviceName, timeoutMillis }: Ways) => {
  return ({ origin, path, url }: Target, request: WebhookRequest, clock: Clock.Clock) =>
    Effect.callback<AttemptOutcome, NoPlace>((resume) => {
      let exchange: WebhookExchange | undefined
      let inTime = () => {}
      let isWaiting = false

      const giveUp = () => {
        leave()
        resume(noPlace)
      }
      const begin = () => {
        if (isWaiting) {
          inTime()
          if (clock.currentTimeMillisUnsafe() > (request.beginBeforeMillis ?? Infinity)) {
            return giveUp()
          }
        }
        request.onBegin?.()
        const attempt = new WebhookExchange()
        exchange = attempt
        dispatcher.dispatch(
          {
            origin,
            path,
            method: "POST",
            headers: deliveryHeaders(serviceName, request, request.secret, request.previousSecret),
            body: request.body,
            // The bound is ours.
            headersTimeout: 0,
            bodyTimeout: 0
          },
          attempt
        )
        inTime = deadline(clock, () => attempt.expire(timeoutMillis))
        attempt.onSettled((outcome) => {
          inTime()
          leave()
          resume(Effect.succeed(outcome))
        })
      }
      const leave = gate.enter(url, begin)
      if (exchange === undefined) {
        isWaiting = true
        inTime = timeouts(clock, giveUp)
      }
      return Effect.sync(() => {
        inTime()
        leave()
        exchange?.abort()
      })
    })
}
