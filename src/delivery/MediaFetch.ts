import { Buffer } from "node:buffer"
import { Context, Duration, Effect, Layer, Option, Schema, Semaphore } from "effect"
import type { Dispatcher } from "undici"
import {
  mediaDownloadsMax,
  mediaFetchSeconds,
  mediaRedirectsMax,
  mediaUrlCharactersMax
} from "../domain/Limits.ts"
import { ConnectionFailed, NameNotResolved } from "./EgressConnector.ts"
import { EgressGuard } from "./EgressGuard.ts"
import type { CheckUrlOptions } from "./EgressRules.ts"
import { EgressRefused } from "./EgressRules.ts"

/** A medium could not be had. The detail is fit for the client and names no inner address. Contract 5. */
export class MediaFetchFailed extends Schema.TaggedError<MediaFetchFailed>()("MediaFetchFailed", {
  /** `too-large` breaks a rule of the model (400); `unreachable` is a failed download (4002). */
  reason: Schema.Literals(["unreachable", "too-large"]),
  detail: Schema.String
}) {
  override get message(): string {
    return this.detail
  }
}

export interface MediaFetchRequest extends CheckUrlOptions {
  readonly url: string
  /** The download is given up at the first byte beyond. */
  readonly bytesMax: number
}

/** Downloads the media that clients name, through the egress guard. Contract 5; ADR 0040. */
export class MediaFetch extends Context.Service<
  MediaFetch,
  {
    readonly fetch: (request: MediaFetchRequest) => Effect.Effect<Uint8Array, MediaFetchFailed>
  }
>()("gateway/delivery/MediaFetch") {
  static readonly layer = (options: {
    readonly serviceName: string
    /** PEM certificates that are trusted in place of the system's, for tests. */
    readonly ca?: string | undefined
  }): Layer.Layer<MediaFetch, never, EgressGuard> => Layer.effect(MediaFetch, make(options))
}

/** undici's own timers stand behind the bound: Effect's clock decides, they only clean up. */
const socketTimeoutMillis = (mediaFetchSeconds + 5) * 1000

const make = Effect.fnUntraced(function* (options: {
  readonly serviceName: string
  readonly ca?: string | undefined
}) {
  const guard = yield* EgressGuard
  const slots = yield* Semaphore.make(mediaDownloadsMax)
  const dispatcher = yield* guard.dispatcher({
    ca: options.ca,
    connectTimeoutMillis: socketTimeoutMillis
  })

  const get = (url: URL, bytesMax: number) =>
    Effect.tryPromise({
      try: (signal) =>
        dispatcher
          .request({
            origin: url.origin,
            path: `${url.pathname}${url.search}`,
            method: "GET",
            headers: {
              accept: "image/*,audio/*,video/*,*/*;q=0.1",
              "accept-encoding": "identity",
              "user-agent": `${options.serviceName}-Media/1.0`
            },
            headersTimeout: socketTimeoutMillis,
            bodyTimeout: socketTimeoutMillis,
            signal
          })
          .then((answer) => read(answer, bytesMax)),
      catch: (cause) => (cause instanceof MediaFetchFailed ? cause : unreachable(whyOf(cause)))
    })

  const follow = (
    request: MediaFetchRequest,
    base: URL | undefined,
    left: number
  ): Effect.Effect<Uint8Array, MediaFetchFailed> =>
    guard.checkUrl(URL.parse(request.url, base?.href)?.href ?? request.url, request).pipe(
      Effect.mapError(({ reason }) => unreachable(reason)),
      Effect.flatMap((url) =>
        Effect.flatMap(get(url, request.bytesMax), (got) => {
          if (got instanceof Uint8Array) return Effect.succeed(got)
          if (left === 0) {
            return Effect.fail(
              unreachable(`its host redirects more than ${mediaRedirectsMax} times`)
            )
          }
          return got.location.length > mediaUrlCharactersMax
            ? Effect.fail(unreachable("it redirects to a URL that is too long"))
            : follow({ ...request, url: got.location }, url, left - 1)
        })
      )
    )

  const fetch = Effect.fn("MediaFetch.fetch")((request: MediaFetchRequest) =>
    slots.withPermit(
      follow(request, undefined, mediaRedirectsMax).pipe(
        Effect.timeoutOrElse({
          duration: Duration.seconds(mediaFetchSeconds),
          orElse: () => Effect.fail(unreachable(`it took longer than ${mediaFetchSeconds} seconds`))
        })
      )
    )
  )

  return MediaFetch.of({ fetch })
})

interface Redirect {
  readonly location: string
}

/** The whole body, or where it is instead. What is too large is not read on. */
const read = async (
  answer: Dispatcher.ResponseData,
  bytesMax: number
): Promise<Uint8Array | Redirect> => {
  const { body, headers, statusCode } = answer
  // Given up: a late error of the body is nobody's concern, and the connection is closed.
  const leave = () => {
    body.on("error", () => {})
    body.destroy()
  }
  const header = (name: string) => [headers[name]].flat()[0]
  const location = header("location")
  if (statusCode >= 300 && statusCode < 400 && location !== undefined) {
    leave()
    return { location }
  }
  const encoding = header("content-encoding") ?? "identity"
  if (statusCode !== 200 || encoding !== "identity") {
    leave()
    throw unreachable(
      statusCode === 200 ? "its host sent it compressed" : `its host answered ${statusCode}`
    )
  }
  const announced = Option.fromUndefinedOr(header("content-length")).pipe(
    Option.map(Number),
    Option.filter(Number.isSafeInteger)
  )
  if (Option.exists(announced, (length) => length > bytesMax)) {
    leave()
    throw tooLarge(bytesMax)
  }
  return collect(body, Option.getOrUndefined(announced), bytesMax, leave)
}

/** With a length announced the bytes are held once, never twice. */
const collect = async (
  body: AsyncIterable<Uint8Array>,
  announced: number | undefined,
  bytesMax: number,
  leave: () => void
): Promise<Uint8Array> => {
  const whole = announced === undefined ? undefined : Buffer.allocUnsafeSlow(announced)
  const chunks: Array<Uint8Array> = []
  let size = 0
  for await (const chunk of body) {
    if (size + chunk.length > bytesMax) {
      leave()
      throw tooLarge(bytesMax)
    }
    if (whole === undefined) chunks.push(chunk)
    else whole.set(chunk, size)
    size += chunk.length
  }
  return whole ?? Buffer.concat(chunks, size)
}

const unreachable = (why: string): MediaFetchFailed =>
  new MediaFetchFailed({ reason: "unreachable", detail: `The URL could not be downloaded: ${why}` })

const tooLarge = (bytesMax: number): MediaFetchFailed =>
  new MediaFetchFailed({
    reason: "too-large",
    detail: `Expected at most ${bytesMax / 1024 / 1024} MB (${bytesMax} bytes), the URL has more`
  })

const whyOf = (cause: unknown): string => {
  if (cause instanceof EgressRefused) return "its host has no public address, or one that is not"
  if (cause instanceof NameNotResolved) return "its host has no address"
  if (cause instanceof ConnectionFailed) {
    if (cause.timedOut) return "its host did not answer in time"
    return cause.phase === "tls" ? "the TLS handshake failed" : "its host cannot be connected to"
  }
  return "the connection broke before the end"
}
