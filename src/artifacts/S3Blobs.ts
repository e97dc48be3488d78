import type { GetObjectCommandOutput } from "@aws-sdk/client-s3"
import { Duration, Effect, Layer, Option, Stream } from "effect"
import type { BucketAccess } from "../domain/Bucket.ts"
import type { StoreUnavailable } from "../domain/Problem.ts"
import { ArtifactBlobs, RemovalRefused } from "./ArtifactBlobs.ts"
import type { BlobId, ByteRange } from "./ArtifactBlobs.ts"
import { BucketFault, faultOf, isTransient, keyOf, openBucket, unavailable } from "./S3Bucket.ts"
import type { Place } from "./S3Bucket.ts"
import { probe } from "./S3Probe.ts"
import { abortForgotten, forgottenAfter, upload } from "./S3Upload.ts"

/**
 * Media in a bucket (ADR 0150). An object is written by one PUT, or in parts that are joined at the end, so that it is
 * never incomplete. Fails at once if the bucket does not exist or refuses the credentials.
 */
export const layer = (options: BucketAccess) =>
  Layer.effect(
    ArtifactBlobs,
    Effect.gen(function* () {
      const send = yield* openBucket(options)
      // Separate prefixes, so that a bucket rule that expires media does not apply to files, which are kept longer
      const at = (id: BlobId): Place => ({
        Bucket: options.bucket,
        Key: keyOf(options, id.startsWith("file-") ? `files/${id}` : id)
      })
      yield* probe(options, send)
      yield* abortForgotten(send, options, forgottenAfter.start)
      const read = (id: BlobId, range: { readonly Range?: string }) =>
        send((s3, init) => s3.getObject({ ...at(id), ...range }, init)).pipe(
          Effect.asSome,
          Effect.catchIf(isMissing, () => Effect.succeedNone),
          Effect.mapError(unavailable)
        )
      return ArtifactBlobs.of({
        put: (id, bytes, record) =>
          Effect.withSpan(upload(send, at(id), bytes, record), "S3Blobs.put"),
        get: Effect.fn("S3Blobs.get")(function* (id) {
          const found = yield* read(id, {})
          if (Option.isNone(found)) return Option.none()
          return Option.some(yield* wholeOf(found.value))
        }),
        stream: Effect.fn("S3Blobs.stream")(function* (id, range) {
          const found = yield* read(id, { Range: `bytes=${range.start}-${range.end}` })
          if (Option.isNone(found)) return Option.none()
          return Option.some(yield* part(found.value, range))
        }),
        remove: Effect.fn("S3Blobs.remove")(function* (id) {
          yield* send((s3, init) => s3.deleteObject(at(id), init)).pipe(
            Effect.catchIf(isMissing, () => Effect.void),
            Effect.mapError((fault) =>
              isTransient(fault) ? unavailable(fault) : new RemovalRefused({ cause: fault })
            )
          )
        }),
        // Removed objects leave no remains. The unfinished uploads below the prefix are those of media or of files
        removeOlder: (_than, of = "media") =>
          of === "media" ? abortForgotten(send, options, forgottenAfter.running) : Effect.void
      })
    })
  )

/** Not if the whole bucket is gone: it may come back with its objects. */
const isMissing = ({ code, status }: BucketFault): boolean =>
  Option.contains(status, 404) && code !== "NoSuchBucket"

/** The longest wait for the next bytes of a body, as for other downloads. */
const silenceMax = Duration.seconds(30)

const silent = unavailable(new BucketFault({ status: Option.none(), code: "SilentBody" }))

/** The bytes as they arrive. The connection closes with the stream. */
const bytesOf = ({
  Body: body
}: GetObjectCommandOutput): Stream.Stream<Uint8Array, StoreUnavailable> => {
  if (body === undefined) return Stream.empty
  const bytes = Stream.fromReadableStream<Uint8Array, StoreUnavailable>({
    evaluate: () => body.transformToWebStream(),
    onError: (cause) => unavailable(faultOf(cause))
  })
  const onSilence = { duration: silenceMax, orElse: () => Effect.fail(silent) }
  return Stream.transformPull(bytes, (pull) =>
    Effect.succeed(Effect.timeoutOrElse(pull, onSilence))
  )
}

const wholeOf = (found: GetObjectCommandOutput) =>
  Effect.map(Stream.runCollect(bytesOf(found)), (pieces) => new Uint8Array(Buffer.concat(pieces)))

/** The bytes of a range in chunks. Cuts off extra bytes, because some services return more than the range. */
const part = (
  found: GetObjectCommandOutput,
  { end, start }: ByteRange
): Effect.Effect<Stream.Stream<Uint8Array, StoreUnavailable>, StoreUnavailable> =>
  found.ContentRange?.startsWith(`bytes ${start}-${end}/`) === true
    ? Effect.succeed(bytesOf(found))
    : Effect.map(wholeOf(found), (bytes) => Stream.succeed(bytes.slice(start, end + 1)))
