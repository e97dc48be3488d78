import { Clock, Context, Duration, Effect, Layer } from "effect"
import { webhookPayloadBytesMax, webhookTimeoutSeconds } from "../domain/Limits.ts"
import type { AttemptOutcome } from "../domain/Webhook.ts"
import { makeDeadlines } from "./Deadlines.ts"
import { EgressGuard } from "./EgressGuard.ts"
import type { EgressRefused } from "./EgressRules.ts"
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
}

export interface WebhookSenderOptions {
  /** The name in the headers, `SERVICE_NAME`. Default `Service` (contract 2). */
  readonly serviceName?: string
  /** Bound on the whole attempt. Default 30 s (spec, Retries; contract 8). */
  readonly timeout?: Duration.Input
  /** PEM certificates that are trusted in place of the system's, for tests. */
  readonly ca?: string | undefined
  /**
   * Attempts under way to one origin; further ones queue within their bound, save the first two of a
   * URL. Default 128.
   */
  readonly connectionsPerOriginMax?: number
}

/** Signs and sends one attempt. Spec, Delivery request, Signature and Retries; contract 8. */
export class WebhookSender extends Context.Service<
  WebhookSender,
  {
    /** Never fails: every way to fail is a class of the outcome. Interruption aborts the request. */
    readonly send: (request: WebhookRequest) => Effect.Effect<AttemptOutcome>
  }
>()("gateway/delivery/WebhookSender") {
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
    script: (request: WebhookRequest) => Effect.Effect<AttemptOutcome> = () =>
      Effect.succeed(mockOutcome(200))
  ): Layer.Layer<WebhookSender | WebhookSenderLog> =>
    Layer.effectContext(
      Effect.sync(() => {
        const sent: Array<SentRequest> = []
        const send = Effect.fnUntraced(function* (request: WebhookRequest) {
          sent.push({ request, atMillis: yield* Clock.currentTimeMillis })
          return yield* script(request)
        })
        return Context.make(WebhookSender, { send }).pipe(
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
  const socketTimeoutMillis = timeoutMillis + backstopMillis
  const dispatcher = yield* guard.dispatcher({
    ca,
    connectTimeoutMillis: socketTimeoutMillis,
    // The gate bounds them.
    connectionsPerOriginMax: Number.MAX_SAFE_INTEGER,
    onOpened: (origin) => gate.opened(origin)
  })

  const deadline = yield* makeDeadlines(timeout)
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

  const post = ({ origin, path, url }: Target, request: WebhookRequest, clock: Clock.Clock) =>
    Effect.callback<AttemptOutcome>((resume) => {
      const exchange = new WebhookExchange()
      const options = {
        origin,
        path,
        method: "POST" as const,
        headers: deliveryHeaders(serviceName, request, request.secret, request.previousSecret),
        body: request.body,
        headersTimeout: socketTimeoutMillis,
        bodyTimeout: socketTimeoutMillis
      }
      const leave = gate.enter(url, () => dispatcher.dispatch(options, exchange))
      const inTime = deadline(clock, () => exchange.expire(timeoutMillis))
      exchange.onSettled((outcome) => {
        inTime()
        leave()
        resume(Effect.succeed(outcome))
      })
      return Effect.sync(() => {
        inTime()
        leave()
        exchange.abort()
      })
    })

  const send = (request: WebhookRequest): Effect.Effect<AttemptOutcome> =>
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

  return { send }
})

/** Contract 8: a body above 64 KB is not sent. */
const tooLarge = (bytes: number): AttemptOutcome =>
  failed("payload_too_large", `${bytes} bytes, more than the ${webhookPayloadBytesMax} allowed`)
