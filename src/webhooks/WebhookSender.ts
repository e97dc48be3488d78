import { Clock, Context, Duration, Effect, Layer, Schema } from "effect"
import type { Dispatcher } from "undici"
import { makeDeadlines } from "../domain/Deadlines.ts"
import type { Deadline } from "../domain/Deadlines.ts"
import { webhookPayloadBytesMax, webhookTimeoutSeconds } from "../domain/limits/Limits.ts"
import { webhookAttemptsPerUserMax } from "../domain/limits/ShareLimits.ts"
import { FairShares } from "../domain/shares/FairShares.ts"
import type { AttemptOutcome } from "../domain/Webhook.ts"
import { EgressGuard } from "../egress/EgressGuard.ts"
import type { EgressRefused } from "../egress/EgressRules.ts"
import { OriginLimiter } from "./OriginLimiter.ts"
import { deliveryHeaders } from "./Signature.ts"
import { WebhookExchange, blocked, failed } from "./WebhookExchange.ts"

/** One attempt of one delivery. docs/reference/webhooks.md#delivery-request */
export interface WebhookRequest {
  /** Whose delivery it is. */
  readonly userId: string
  readonly url: string
  /** The endpoint's whole secret string, including `whsec_`. */
  readonly secret: string
  /** Adds a second signature, for 24 hours after a rotation. */
  readonly previousSecret?: string | undefined
  /** `whd_…`, the same for every attempt. */
  readonly deliveryId: string
  /** The stored body, sent unchanged in every attempt. */
  readonly body: Uint8Array
  /** When this attempt was signed, in Unix seconds. */
  readonly timestampSeconds: number
  /** If the attempt still waits in a queue at this time (Unix milliseconds), it is not started. */
  readonly startBeforeMillis?: number | undefined
  /** Called when the attempt leaves its queues, before anything is sent. */
  readonly onStart?: (() => void) | undefined
}

/** The attempt waited too long for a place of its user or in its origin's queue: nothing was sent. */
export class AttemptNotStarted extends Schema.TaggedError<AttemptNotStarted>()(
  "AttemptNotStarted",
  {}
) {}

export interface WebhookSenderOptions {
  /** `SERVICE_NAME`, which is part of the header names. Default `Service`. */
  readonly serviceName?: string
  /** The timeout of the whole attempt. Default 30 s. docs/reference/webhooks.md#delivery */
  readonly timeout?: Duration.Input
  /** The timeout of the wait in the origin's queue. Default 8 s. ADR 0003. */
  readonly queueTimeout?: Duration.Input
  /** PEM certificates to trust instead of the system's; for tests. */
  readonly ca?: string | undefined
  /**
   * The maximum number of concurrent attempts to one origin. Others wait, except for the first two of a URL. Default
   * 128.
   */
  readonly connectionsPerOriginMax?: number
  /** The maximum number of concurrent attempts of one user. Others wait. Default 512. */
  readonly attemptsPerUserMax?: number
}

/** Signs and sends one attempt. docs/reference/webhooks.md#delivery */
export class WebhookSender extends Context.Service<
  WebhookSender,
  {
    /**
     * Sends one attempt. A failed attempt does not fail the effect: its outcome contains the class of failure. The wait
     * in the origin's queue is not part of the attempt or its timeout. Interruption aborts the request.
     */
    readonly send: (request: WebhookRequest) => Effect.Effect<AttemptOutcome, AttemptNotStarted>
    /** How many attempts to this URL may run now without any of them waiting long in the origin's queue. */
    readonly fairShare: (url: string) => number
  }
>()("gateway/webhooks/WebhookSender") {
  /** Sends over HTTPS through the egress guard. Keeps connections alive until the layer is released. */
  static readonly layer = (
    options: WebhookSenderOptions = {}
  ): Layer.Layer<WebhookSender, never, EgressGuard> =>
    Layer.effect(WebhookSender, makeWebhookSender(options))

  /**
   * A mock that sends nothing. It records each request with its time in `WebhookSenderLog` and returns the script's
   * outcome, which may wait or never end. Without a script, every attempt gets a 200.
   */
  static readonly layerMock = (
    script: (request: WebhookRequest) => Effect.Effect<AttemptOutcome, AttemptNotStarted> = () =>
      Effect.succeed(mockOutcome(200)),
    fairShare: (url: string) => number = () => Number.POSITIVE_INFINITY
  ): Layer.Layer<WebhookSender | WebhookSenderLog> =>
    Layer.effectContext(
      Effect.sync(() => {
        const sent: Array<SentRequest> = []
        const send = Effect.fnUntraced(function* ({ onStart, ...request }: WebhookRequest) {
          // Without `onStart`, which would keep its caller in memory as long as the log
          sent.push({ request, atMillis: yield* Clock.currentTimeMillis })
          onStart?.()
          return yield* script(request)
        })
        return Context.make(WebhookSender, { send, fairShare }).pipe(
          Context.add(WebhookSenderLog, { sent: Effect.sync(() => [...sent]) })
        )
      })
    )
}

/** A request that the mock received, and when. */
export interface SentRequest {
  readonly request: WebhookRequest
  readonly atMillis: number
}

/** The requests that `WebhookSender.layerMock` received, oldest first. */
export class WebhookSenderLog extends Context.Service<
  WebhookSenderLog,
  { readonly sent: Effect.Effect<ReadonlyArray<SentRequest>> }
>()("gateway/webhooks/WebhookSenderLog") {}

/** The outcome of a response with this status, for the mock's script. */
export const mockOutcome = (status: number): AttemptOutcome => ({
  status,
  failure: status < 300 ? null : status < 400 ? "redirect" : "http_status",
  detail: status < 300 ? null : `HTTP ${status}`,
  answer: "",
  remoteAddress: "192.0.2.1"
})

/** The parts of a URL that the egress guard has accepted. */
interface Target {
  readonly url: URL
  readonly origin: string
  readonly path: string
}

/** The maximum number of URLs that one process caches. */
const cachedTargetsMax = 1000

/** After this time the attempt's claim would be too old to send. ADR 0003. */
const queueTimeout = Duration.seconds(8)

/** undici's connect timeout is longer by this much: Effect's clock decides, and undici's timer only cleans up. */
const backstopMillis = 5000

const makeWebhookSender = Effect.fnUntraced(function* (options: WebhookSenderOptions) {
  const guard = yield* EgressGuard
  const { serviceName = "Service", connectionsPerOriginMax = 128, ca } = options
  const limiter = new OriginLimiter(connectionsPerOriginMax)
  const { attemptsPerUserMax = webhookAttemptsPerUserMax } = options
  const users = new FairShares({
    capacity: Infinity,
    aloneMax: 1,
    perCallerMax: attemptsPerUserMax,
    queueMax: Infinity
  })
  const timeout = Duration.fromInputUnsafe(
    options.timeout ?? Duration.seconds(webhookTimeoutSeconds)
  )
  const timeoutMillis = Duration.toMillis(timeout)
  const dispatcher = yield* guard.dispatcher({
    ca,
    connectTimeoutMillis: timeoutMillis + backstopMillis,
    // Unlimited here, because `OriginLimiter` limits connections
    connectionsPerOriginMax: Number.MAX_SAFE_INTEGER,
    onOpened: (origin) => limiter.connectionOpened(origin)
  })

  const deadline = yield* makeDeadlines(timeout)
  const queueDeadline = yield* makeDeadlines(
    Duration.fromInputUnsafe(options.queueTimeout ?? queueTimeout)
  )
  const post = makePost({
    serviceName,
    users,
    limiter,
    dispatcher,
    deadline,
    timeoutMillis,
    queueDeadline
  })
  const targets = new Map<string, Target>()

  /** Cached, because the check depends only on the text of the URL. Each connect is checked separately. */
  const targetOf = (text: string): Effect.Effect<Target, EgressRefused> => {
    const known = targets.get(text)
    if (known !== undefined) return Effect.succeed(known)
    return Effect.map(guard.checkUrl(text, { schemes: ["https"] }), (url) => {
      const target = { url, origin: url.origin, path: `${url.pathname}${url.search}` }
      if (targets.size >= cachedTargetsMax) targets.clear()
      targets.set(text, target)
      return target
    })
  }

  const send = (request: WebhookRequest): Effect.Effect<AttemptOutcome, AttemptNotStarted> =>
    request.body.byteLength > webhookPayloadBytesMax
      ? Effect.succeed(tooLarge(request.body.byteLength))
      : Effect.clockWith((clock) =>
          targetOf(request.url).pipe(
            Effect.flatMap((target) => post(target, request, clock)),
            Effect.catchTag("EgressRefused", () => Effect.succeed(blocked))
          )
        )

  const fairShare = (text: string): number => {
    const target = targets.get(text)
    return target === undefined ? connectionsPerOriginMax : limiter.fairShare(target.url)
  }

  return { send, fairShare }
})

const notStarted = Effect.fail(new AttemptNotStarted())

/** A body over 64 KB is not sent. docs/reference/webhooks.md#delivery-request */
const tooLarge = (bytes: number): AttemptOutcome =>
  failed("payload_too_large", `${bytes} bytes, more than the ${webhookPayloadBytesMax} allowed`)

interface PostOptions {
  readonly serviceName: string
  readonly users: FairShares
  readonly limiter: OriginLimiter
  readonly dispatcher: Dispatcher
  /** The time limit of an attempt. */
  readonly deadline: Deadline
  readonly timeoutMillis: number
  /** The time limit of the wait for a place of the user and in the origin's queue. */
  readonly queueDeadline: Deadline
}

/** Runs one attempt: waits for a slot, sends, releases the slot. */
const makePost = ({
  deadline,
  dispatcher,
  limiter,
  queueDeadline,
  serviceName,
  timeoutMillis,
  users
}: PostOptions) => {
  /** Takes a place of the user, then a slot at the origin. Returns the function that releases them or cancels the wait. */
  const acquire = (userId: string, url: URL, start: () => void): (() => void) => {
    let hasPlace = false
    let isReleased = false
    let releaseOrigin = () => {}
    const cancel = users.wait(userId, 1, () => {
      hasPlace = true
      releaseOrigin = limiter.acquire(url, start)
      // `start` may have given up at once
      if (isReleased) releaseOrigin()
    })
    return () => {
      if (isReleased) return
      isReleased = true
      if (!hasPlace) return cancel?.()
      releaseOrigin()
      users.give(userId)
    }
  }

  return ({ origin, path, url }: Target, request: WebhookRequest, clock: Clock.Clock) =>
    Effect.callback<AttemptOutcome, AttemptNotStarted>((resume) => {
      let exchange: WebhookExchange | undefined
      let cancelDeadline = () => {}
      let isWaiting = false

      const giveUp = () => {
        release()
        resume(notStarted)
      }
      const start = () => {
        if (isWaiting) {
          cancelDeadline()
          if (clock.currentTimeMillisUnsafe() > (request.startBeforeMillis ?? Infinity)) {
            return giveUp()
          }
        }
        request.onStart?.()
        const attempt = new WebhookExchange()
        exchange = attempt
        dispatcher.dispatch(
          {
            origin,
            path,
            method: "POST",
            headers: deliveryHeaders(serviceName, request, request.secret, request.previousSecret),
            body: request.body,
            // undici's own timeouts are off; `deadline` is the only one
            headersTimeout: 0,
            bodyTimeout: 0
          },
          attempt
        )
        cancelDeadline = deadline(clock, () => attempt.expire(timeoutMillis))
        attempt.onSettled((outcome) => {
          cancelDeadline()
          release()
          resume(Effect.succeed(outcome))
        })
      }
      const release = acquire(request.userId, url, start)
      if (exchange === undefined) {
        isWaiting = true
        cancelDeadline = queueDeadline(clock, giveUp)
      }
      return Effect.sync(() => {
        cancelDeadline()
        release()
        exchange?.abort()
      })
    })
}
