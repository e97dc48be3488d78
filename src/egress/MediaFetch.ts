import { Context, Duration, Effect, Layer, Result, Schema } from "effect"
import type { Scope, Stream } from "effect"
import { Buffer } from "node:buffer"
import type { Readable } from "node:stream"
import type { Dispatcher } from "undici"
import { bodyStream } from "../domain/BodyStream.ts"
import {
  mediaFetchSeconds,
  mediaRedirectsMax,
  mediaUrlCharactersMax
} from "../domain/limits/Limits.ts"
import {
  mediaDownloadsMax,
  mediaDownloadsShareMax,
  mediaDownloadsWaitingMax,
  ofProcess,
  slowMediaBytesMin,
  slowMediaSeconds
} from "../domain/limits/ShareLimits.ts"
import { FairShares } from "../domain/shares/FairShares.ts"
import type { ShareExhausted } from "../domain/shares/FairShares.ts"
import { ConnectionFailed, NameNotResolved } from "./EgressConnector.ts"
import { EgressGuard } from "./EgressGuard.ts"
import type { CheckUrlOptions } from "./EgressRules.ts"
import { EgressRefused } from "./EgressRules.ts"

/** A medium could not be downloaded. The client sees the detail, which contains no internal address. */
export class MediaFetchFailed extends Schema.TaggedError<MediaFetchFailed>()("MediaFetchFailed", {
  /** `too-large` breaks a rule of the model (400); `unreachable` is a failed download (4002). */
  reason: Schema.Literals(["unreachable", "too-large"]),
  /** Whether another attempt may succeed, because the host or the route to it fails temporarily. */
  isTransient: Schema.Boolean,
  detail: Schema.String
}) {
  override get message(): string {
    return this.detail
  }
}

export interface MediaFetchRequest extends CheckUrlOptions {
  readonly url: string
  /** The download stops at the first byte beyond this size. */
  readonly bytesMax: number
  /** The caller whose share of the downloads this one uses. */
  readonly caller: string
}

/** A running download, closed with the scope. */
export interface OpenedMedia {
  /** `Content-Length`, if the host sent it. */
  readonly announced?: number
  readonly stream: Stream.Stream<Uint8Array, MediaFetchFailed>
}

/** Downloads media from any host, through the egress guard. docs/reference/models.md#media-by-url */
export class MediaFetch extends Context.Service<
  MediaFetch,
  {
    /**
     * Downloads input media of clients into memory, because they are inspected (ADR 0040). A few downloads run at a
     * time, shared fairly among the callers. A download from a slow host is aborted.
     */
    readonly fetch: (
      request: MediaFetchRequest
    ) => Effect.Effect<Uint8Array, MediaFetchFailed | ShareExhausted>
    /** Whether this many more downloads of the caller may wait. */
    readonly mayWait: (caller: string, count: number) => boolean
    /** Results of vendors, streamed. Only the silence between two chunks is limited, not the total time. */
    readonly open: (
      request: Omit<MediaFetchRequest, "bytesMax" | "caller">
    ) => Effect.Effect<OpenedMedia, MediaFetchFailed, Scope.Scope>
  }
>()("gateway/egress/MediaFetch") {
  static readonly layer = (options: {
    readonly serviceName: string
    /** The number of identical processes of this command, which share the limit of downloads. */
    readonly processes?: number
    /** PEM certificates trusted instead of the system's, for tests. */
    readonly ca?: string | undefined
  }): Layer.Layer<MediaFetch, never, EgressGuard> => Layer.effect(MediaFetch, make(options))
}

const make = Effect.fnUntraced(function* (options: {
  readonly serviceName: string
  readonly processes?: number
  readonly ca?: string | undefined
}) {
  const downloads = new FairShares({
    capacity: ofProcess(mediaDownloadsMax, options.processes ?? 1),
    aloneMax: mediaDownloadsShareMax,
    queueMax: mediaDownloadsWaitingMax
  })
  const follow = yield* makeFollow(options)
  const within = <A, R>(work: Effect.Effect<A, MediaFetchFailed, R>) =>
    Effect.timeoutOrElse(work, {
      duration: Duration.seconds(mediaFetchSeconds),
      orElse: () =>
        Effect.fail(failingTemporarily(`it took longer than ${mediaFetchSeconds} seconds`))
    })
  return MediaFetch.of({
    fetch: Effect.fn("MediaFetch.fetch")((request: MediaFetchRequest) =>
      follow(request, undefined, mediaRedirectsMax).pipe(
        Effect.flatMap((medium) => collect(medium, request.bytesMax)),
        Effect.scoped,
        within,
        downloads.within(request.caller)
      )
    ),
    mayWait: (caller, count) => downloads.queuedBy(caller) + count <= mediaDownloadsWaitingMax,
    open: Effect.fn("MediaFetch.open")(function* (request) {
      const { announced, body } = yield* within(follow(request, undefined, mediaRedirectsMax))
      const stream = bodyStream(body, {
        silenceMax: Duration.seconds(mediaFetchSeconds),
        onSilence: () =>
          failingTemporarily(`its host sent nothing for ${mediaFetchSeconds} seconds`),
        onBroken: failureOf
      })
      return { stream, ...(announced === undefined ? {} : { announced }) }
    })
  })
})

/** Above the download timeout, because Effect's clock decides. undici's own timers only clean up. */
const socketTimeoutMillis = (mediaFetchSeconds + 5) * 1000

/** Requests a URL and follows its redirects until a host responds with a medium. */
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
        catch: failureOf
      }),
      discard,
      { interruptible: true }
    )

  const follow = (
    request: Omit<MediaFetchRequest, "bytesMax" | "caller">,
    base: URL | undefined,
    left: number
  ): Effect.Effect<MediumResponse, MediaFetchFailed, Scope.Scope> =>
    Effect.gen(function* () {
      const href = URL.parse(request.url, base?.href)?.href ?? request.url
      const url = yield* Effect.mapError(guard.checkUrl(href, request), ({ reason }) =>
        unreachable(reason)
      )
      const response = yield* get(url)
      const read = yield* Effect.fromResult(readResponse(response))
      if ("body" in read) return read
      yield* discard(response)
      if (left === 0) {
        return yield* unreachable(`its host redirects more than ${mediaRedirectsMax} times`)
      }
      return read.location.length > mediaUrlCharactersMax
        ? yield* unreachable("it redirects to a URL that is too long")
        : yield* follow({ ...request, url: read.location }, url, left - 1)
    })

  return follow
})

/** Closes the connection. A late error of the body is ignored. */
const discard = ({ body }: Dispatcher.ResponseData) =>
  Effect.sync(() => {
    body.on("error", () => {})
    body.destroy()
  })

interface Redirect {
  readonly location: string
}

interface MediumResponse {
  readonly announced: number | undefined
  readonly body: Readable
}

/** Returns the medium, or the target of a redirect. */
const readResponse = ({
  body,
  headers,
  statusCode
}: Dispatcher.ResponseData): Result.Result<MediumResponse | Redirect, MediaFetchFailed> => {
  const header = (name: string) => [headers[name]].flat()[0]
  const location = header("location")
  if (statusCode >= 300 && statusCode < 400 && location !== undefined) {
    return Result.succeed({ location })
  }
  if (statusCode !== 200) {
    const isTransient = statusCode === 429 || statusCode >= 500
    return Result.fail(unreachable(`its host responded with ${statusCode}`, isTransient))
  }
  if ((header("content-encoding") ?? "identity") !== "identity") {
    return Result.fail(unreachable("its host sent it compressed"))
  }
  const announced = Number(header("content-length") ?? Number.NaN)
  return Result.succeed({
    body,
    announced: Number.isSafeInteger(announced) ? announced : undefined
  })
}

/** Reads the whole body, up to `bytesMax`. With a `Content-Length`, the bytes are copied only once. */
const collect = ({ announced, body }: MediumResponse, bytesMax: number) =>
  Effect.suspend(() => {
    let size = 0
    const read = async () => {
      if (announced !== undefined && announced > bytesMax) throw tooLarge(bytesMax)
      const whole = announced === undefined ? undefined : Buffer.allocUnsafeSlow(announced)
      const chunks: Array<Uint8Array> = []
      for await (const chunk of body) {
        if (size + chunk.length > bytesMax) throw tooLarge(bytesMax)
        if (whole === undefined) chunks.push(chunk)
        else whole.set(chunk, size)
        size += chunk.length
      }
      return whole ?? Buffer.concat(chunks, size)
    }
    const wholeBody = Effect.tryPromise({
      try: read,
      catch: (cause) => (cause instanceof MediaFetchFailed ? cause : failureOf(cause))
    })
    return Effect.raceFirst(
      wholeBody,
      failWhenSlow(() => size)
    )
  })

/** Fails once fewer bytes than the minimum arrive in a whole period. */
const failWhenSlow = Effect.fnUntraced(function* (size: () => number) {
  let before = 0
  do {
    before = size()
    yield* Effect.sleep(Duration.seconds(slowMediaSeconds))
  } while (size() - before >= slowMediaBytesMin * slowMediaSeconds)
  return yield* failingTemporarily(
    `its host sent less than ${slowMediaBytesMin / 1024} KiB per second over ${slowMediaSeconds} seconds`
  )
})

const unreachable = (why: string, isTransient = false): MediaFetchFailed =>
  new MediaFetchFailed({
    reason: "unreachable",
    isTransient,
    detail: `The URL could not be downloaded: ${why}`
  })

const failingTemporarily = (why: string) => unreachable(why, true)

const tooLarge = (bytesMax: number): MediaFetchFailed =>
  new MediaFetchFailed({
    reason: "too-large",
    isTransient: false,
    detail: `Expected at most ${bytesMax / 1024 / 1024} MB (${bytesMax} bytes), the URL has more`
  })

const failureOf = (cause: unknown): MediaFetchFailed => {
  if (cause instanceof EgressRefused) {
    return unreachable("its host has no public address, or also has a private one")
  }
  if (cause instanceof NameNotResolved) return failingTemporarily("its host has no address")
  if (cause instanceof ConnectionFailed) {
    if (cause.timedOut) return failingTemporarily("its host did not respond in time")
    return failingTemporarily(
      cause.phase === "tls" ? "the TLS handshake failed" : "cannot connect to its host"
    )
  }
  return failingTemporarily("the connection broke before the end")
}
