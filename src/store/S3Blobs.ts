import { AwsClient } from "aws4fetch"
import { Effect, Layer, Option, Redacted, Schedule, Schema, Stream } from "effect"
import type { ArtifactId } from "../domain/Ids.ts"
import { StoreUnavailable } from "../domain/Problem.ts"
import { ArtifactBlobs } from "./ArtifactBlobs.ts"

/** `ARTIFACT_STORE=s3://bucket/prefix` and the usual AWS variables. Contract 9. */
export interface S3Options {
  readonly bucket: string
  /** Without slashes at its ends; may be empty. */
  readonly prefix: string
  readonly region: string
  /** `AWS_ENDPOINT_URL`: another service that speaks S3; addressed by path. */
  readonly endpoint: Option.Option<string>
  readonly accessKeyId: string
  readonly secretAccessKey: Redacted.Redacted
  readonly sessionToken: Option.Option<Redacted.Redacted>
}

/** The bucket cannot be used: one line with the remedy. Contract 9. */
export class S3Unusable extends Schema.TaggedError<S3Unusable>()("S3Unusable", {
  message: Schema.String
}) {}

/** One request, its answer's headers included; the body of a stream may take longer. */
const requestMillisMax = 30_000

/**
 * Media in a bucket (ADR 0041). Every object is one PUT, so that none is ever half there. Fails at
 * once when the bucket does not exist or refuses the credentials.
 */
export const layer = (options: S3Options) =>
  Layer.effect(
    ArtifactBlobs,
    Effect.gen(function* () {
      const send = sender(options)
      yield* probe(options, send)
      const read = (id: ArtifactId, headers: Record<string, string>) =>
        Effect.flatMap(send("GET", id, { headers }), (answer) => {
          if (answer.status === 200 || answer.status === 206) return Effect.succeedSome(answer)
          return answer.status === 404
            ? Effect.as(drop(answer), Option.none<Response>())
            : refusedBy(answer)
        })
      return ArtifactBlobs.of({
        put: Effect.fn("S3Blobs.put")(function* (id, bytes) {
          const answer = yield* send("PUT", id, { body: new Uint8Array(bytes) })
          if (!answer.ok) return yield* refusedBy(answer)
          yield* drop(answer)
        }),
        get: Effect.fn("S3Blobs.get")(function* (id) {
          const answer = yield* read(id, {})
          if (Option.isNone(answer)) return Option.none()
          return Option.some(yield* wholeOf(answer.value))
        }),
        stream: Effect.fn("S3Blobs.stream")(function* (id, { end, start }) {
          const answer = yield* read(id, { range: `bytes=${start}-${end}` })
          if (Option.isNone(answer)) return Option.none()
          return Option.some(yield* part(answer.value, start, end))
        }),
        remove: Effect.fn("S3Blobs.remove")(function* (id) {
          const answer = yield* send("DELETE", id)
          if (!answer.ok && answer.status !== 404) return yield* refusedBy(answer)
          yield* drop(answer)
        })
      })
    })
  )

const wholeOf = (answer: Response) =>
  Effect.tryPromise({
    try: async () => new Uint8Array(await answer.arrayBuffer()),
    catch: (cause) => new StoreUnavailable({ cause })
  })

/** The bytes of a range in pieces; some that speak S3 answer with more than was asked for. */
const part = (
  answer: Response,
  start: number,
  end: number
): Effect.Effect<Stream.Stream<Uint8Array, StoreUnavailable>, StoreUnavailable> => {
  const { body } = answer
  const isExact = (answer.headers.get("content-range") ?? "").startsWith(`bytes ${start}-${end}/`)
  if (isExact && body !== null) {
    return Effect.succeed(
      Stream.fromReadableStream<Uint8Array, StoreUnavailable>({
        evaluate: () => body,
        onError: (cause) => new StoreUnavailable({ cause })
      })
    )
  }
  return Effect.map(wholeOf(answer), (bytes) => Stream.succeed(bytes.slice(start, end + 1)))
}

type Send = ReturnType<typeof sender>

const sender = (options: S3Options) => {
  const client = new AwsClient({
    accessKeyId: options.accessKeyId,
    secretAccessKey: Redacted.value(options.secretAccessKey),
    ...Option.match(options.sessionToken, {
      onNone: () => ({}),
      onSome: (token) => ({ sessionToken: Redacted.value(token) })
    }),
    service: "s3",
    region: options.region
  })
  const base = baseOf(options)
  return (method: string, name: string, init: RequestInit = {}) =>
    Effect.tryPromise({
      try: async (signal) => {
        const within = AbortSignal.any([signal, AbortSignal.timeout(requestMillisMax)])
        const request = await client.sign(`${base}${name}`, { ...init, method })
        return fetch(request, { signal: within, redirect: "error" })
      },
      catch: (cause) => new StoreUnavailable({ cause })
    }).pipe(
      Effect.filterOrElse(
        ({ status }) => status < 500 && status !== 429,
        (answer) => refusedBy(answer)
      ),
      // All of these requests may be repeated: they are told apart by their whole name
      Effect.retry({ times: 2, schedule: Schedule.exponential("200 millis") })
    )
}

/** A bucket of AWS by host name, any other by path; dots in a name would break its certificate. */
const baseOf = ({ bucket, endpoint, prefix, region }: S3Options): string => {
  const folder = prefix === "" ? "" : `${prefix}/`
  return Option.match(endpoint, {
    onSome: (url) => `${url.replace(/\/+$/u, "")}/${bucket}/${folder}`,
    onNone: () =>
      bucket.includes(".")
        ? `https://s3.${region}.amazonaws.com/${bucket}/${folder}`
        : `https://${bucket}.s3.${region}.amazonaws.com/${folder}`
  })
}

/** Lets the connection go. */
const drop = (answer: Response) => Effect.promise(async () => void (await answer.arrayBuffer()))

const refusedBy = Effect.fnUntraced(function* (answer: Response) {
  const text = yield* Effect.promise(() => answer.text().catch(() => ""))
  const code = /<Code>([A-Za-z0-9]{1,60})<\/Code>/u.exec(text)?.[1] ?? "no code"
  return yield* new StoreUnavailable({
    cause: new Error(`The artifact bucket answered ${answer.status} (${code})`)
  })
})

/** Reads an object that is not there: only a usable bucket says so. */
const probe = Effect.fnUntraced(function* ({ bucket }: S3Options, send: Send) {
  const fail = (why: string, remedy: string) =>
    new S3Unusable({ message: `ARTIFACT_STORE: the bucket ${bucket} ${why}; ${remedy}` })
  const answer = yield* send("GET", ".probe").pipe(
    Effect.mapError(() => fail("cannot be reached", "check AWS_ENDPOINT_URL and AWS_REGION"))
  )
  const text = yield* Effect.promise(() => answer.text())
  if (answer.status === 404 && !text.includes("NoSuchBucket")) return
  if (answer.ok) return
  return yield* answer.status === 404
    ? fail("does not exist", "create it, or name another")
    : fail(
        `answered ${answer.status}`,
        "check AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and the right to list, read, write and delete"
      )
})
