import { Effect, Layer, Option, Stream } from "effect"
import type { BucketAccess } from "../domain/Bucket.ts"
import type { ArtifactId } from "../domain/Ids.ts"
import { StoreUnavailable } from "../domain/Problem.ts"
import { ArtifactBlobs, ArtifactStoreUnusable } from "./ArtifactBlobs.ts"
import { drop, keyOf, refusedBy, sender } from "./S3Requests.ts"
import type { Send } from "./S3Requests.ts"
import { abortForgotten, upload } from "./S3Upload.ts"

/**
 * Media in a bucket (ADR 0041). An object is one PUT, or parts that are joined at the end, so that
 * none is ever half there. Fails at once when the bucket does not exist or refuses the credentials.
 */
export const layer = (options: BucketAccess) =>
  Layer.effect(
    ArtifactBlobs,
    Effect.gen(function* () {
      const send = sender(options)
      const at = (id: ArtifactId) => keyOf(options, id)
      yield* probe(options, send)
      yield* abortForgotten(send, keyOf(options, ""))
      const read = (id: ArtifactId, headers: Record<string, string>) =>
        Effect.flatMap(send("GET", at(id), { headers }), (answer) => {
          if (answer.status === 200 || answer.status === 206) return Effect.succeedSome(answer)
          return answer.status === 404
            ? Effect.as(drop(answer), Option.none<Response>())
            : refusedBy(answer)
        })
      return ArtifactBlobs.of({
        put: (id, bytes) => Effect.withSpan(upload(send, at(id), bytes), "S3Blobs.put"),
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
          const answer = yield* send("DELETE", at(id))
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

/** Reads an object that is not there: only a usable bucket says so. */
const probe = Effect.fnUntraced(function* (options: BucketAccess, send: Send) {
  const fail = (why: string, remedy: string) =>
    new ArtifactStoreUnusable({
      message: `ARTIFACT_STORE: the bucket ${options.bucket} ${why}; ${remedy}`
    })
  const answer = yield* send("GET", keyOf(options, ".probe")).pipe(
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
