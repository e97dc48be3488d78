import { Context, Duration, Effect, Layer, Result, Schema, Semaphore, Stream } from "effect"
import type { Scope } from "effect"
import { Buffer } from "node:buffer"
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

/** A medium on its way, let go when the scope closes. */
export interface OpenedMedia {
  /** How many bytes will come, where that is told. */
  readonly announced?: number
  readonly stream: Stream.Stream<Uint8Array, MediaFetchFailed>
}

/** Downloads media from anywhere, through the egress guard. Contract 5; ADR 0040. */
export class MediaFetch extends Context.Service<
  MediaFetch,
  {
    /** What a client names: held whole, because it is looked into. */
    readonly fetch: (request: MediaFetchRequest) => Effect.Effect<Uint8Array, MediaFetchFailed>
    /** What a vendor made: in pieces as they come, however long it takes, but never silent for long. */
    readonly open: (
      request: Omit<MediaFetchRequest, "bytesMax">
    ) => Effect.Effect<OpenedMedia, MediaFetchFailed, Scope.Scope>
  }
>()("gateway/egress/MediaFetch") {
  static readonly layer = (options: {
    readonly serviceName: string
    /** PEM certificates that are trusted in place of the system's, for tests. */
    readonly ca?: string | undefined
  }): Layer.Layer<MediaFetch, never, EgressGuard> => Layer.effect(MediaFetch, make(options))
}

const make = Effect.fnUntraced(function* (options: {
  readonly serviceName: string
  readonly ca?: string | undefined
}) {
  const slots = yield* Semaphore.make(mediaDownloadsMax)
  const follow = yield* makeFollow(options)
  const within = <A, R>(work: Effect.Effect<A, MediaFetchFailed, R>) =>
    Effect.timeoutOrElse(work, {
      duration: Duration.seconds(mediaFetchSeconds),
      orElse: () => Effect.fail(unreachable(`it took longer than ${mediaFetchSeconds} seconds`))
    })
  return MediaFetch.of({
    fetch: Effect.fn("MediaFetch.fetch")((request: MediaFetchRequest) =>
      follow(request, undefined, mediaRedirectsMax).pipe(
        Effect.flatMap((answer) => collect(answer, request.bytesMax)),
        Effect.scoped,
        within,
        slots.withPermit
      )
    ),
    open: Effect.fn("MediaFetch.open")(function* (request) {
      const { announced, body } = yield* within(follow(request, undefined, mediaRedirectsMax))
      const silent = unreachable(`its host sent nothing for ${mediaFetchSeconds} seconds`)
      const stream = Stream.fromAsyncIterable<Uint8Array, MediaFetchFailed>(body, (cause) =>
        unreachable(whyOf(cause))
      ).pipe(
        Stream.timeoutOrElse({
          duration: Duration.seconds(mediaFetchSeconds),
          orElse: () => Stream.fail(silent)
        })
      )
      return { stream, ...(announced === undefined ? {} : { announced }) }
    })
  })
})

/** undici's own timers stand behind the bound: Effect's clock decides, they only clean up. */
const socketTimeoutMillis = (mediaFetchSeconds + 5) * 1000

/** Asks for a URL and where it redirects to, until somebody answers with a medium. */
const makeFollow = Effect.fnUntraced(function* (options: {
  readonly serviceName: string
  readonly ca?: string | undefined
}) {
  const guard = yield* EgressGuard
  const dispatcher = yield* guard.dispatcher({
    ca: options.ca,
    connectTimeoutMillis: socketTimeoutMillis
  })

  const get = (url: URL) =>
    Effect.acquireRelease(
      Effect.tryPromise({
        try: (signal) =>
          dispatcher.request({
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
          }),
        catch: (cause) => unreachable(whyOf(cause))
      }),
      letGo,
      { interruptible: true }
    )

  const follow = (
    request: Omit<MediaFetchRequest, "bytesMax">,
    base: URL | undefined,
    left: number
  ): Effect.Effect<MediumAnswer, MediaFetchFailed, Scope.Scope> =>
    Effect.gen(function* () {
      const href = URL.parse(request.url, base?.href)?.href ?? request.url
      const url = yield* Effect.mapError(guard.checkUrl(href, request), ({ reason }) =>
        unreachable(reason)
      )
      const answer = yield* get(url)
      const read = yield* Effect.fromResult(readAnswer(answer))
      if ("body" in read) return read
      yield* letGo(answer)
      if (left === 0) {
        return yield* unreachable(`its host redirects more than ${mediaRedirectsMax} times`)
      }
      return read.location.length > mediaUrlCharactersMax
        ? yield* unreachable("it redirects to a URL that is too long")
        : yield* follow({ ...request, url: read.location }, url, left - 1)
    })

  return follow
})

/** Given up: a late error of the body is nobody's concern, and the connection is closed. */
const letGo = ({ body }: Dispatcher.ResponseData) =>
  Effect.sync(() => {
    body.on("error", () => {})
    body.destroy()
  })

interface Redirect {
  readonly location: string
}

interface MediumAnswer {
  readonly announced: number | undefined
  readonly body: AsyncIterable<Uint8Array>
}

/** The medium, or where it is instead. */
const readAnswer = ({
  body,
  headers,
  statusCode
}: Dispatcher.ResponseData): Result.Result<MediumAnswer | Redirect, MediaFetchFailed> => {
  const header = (name: string) => [headers[name]].flat()[0]
  const location = header("location")
  if (statusCode >= 300 && statusCode < 400 && location !== undefined) {
    return Result.succeed({ location })
  }
  if (statusCode !== 200) return Result.fail(unreachable(`its host answered ${statusCode}`))
  if ((header("content-encoding") ?? "identity") !== "identity") {
    return Result.fail(unreachable("its host sent it compressed"))
  }
  const announced = Number(header("content-length") ?? Number.NaN)
  return Result.succeed({
    body,
    announced: Number.isSafeInteger(announced) ? announced : undefined
  })
}

/** The whole body; what is too large is not read on. With a length announced the bytes are held once. */
const collect = ({ announced, body }: MediumAnswer, bytesMax: number) =>
  Effect.tryPromise({
    try: async () => {
      if (announced !== undefined && announced > bytesMax) throw tooLarge(bytesMax)
      const whole = announced === undefined ? undefined : Buffer.allocUnsafeSlow(announced)
      const chunks: Array<Uint8Array> = []
      let size = 0
      for await (const chunk of body) {
        if (size + chunk.length > bytesMax) throw tooLarge(bytesMax)
        if (whole === undefined) chunks.push(chunk)
        else whole.set(chunk, size)
        size += chunk.length
      }
      return whole ?? Buffer.concat(chunks, size)
    },
    catch: (cause) => (cause instanceof MediaFetchFailed ? cause : unreachable(whyOf(cause)))
  })

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
