import type { CompletedPart } from "@aws-sdk/client-s3"
import { Clock, Effect, Option, Stream } from "effect"
import type { BucketAccess } from "../domain/Bucket.ts"
import type { StoreUnavailable } from "../domain/Problem.ts"
import { BucketFault, keyOf, unavailable } from "./S3Bucket.ts"
import type { Place, Send } from "./S3Bucket.ts"

/** The memory per upload in bytes. S3 requires at least 5 MiB for each part except the last. */
const partBytes = 8 * 1024 * 1024

/** A running upload in parts. */
interface Upload extends Place {
  readonly UploadId: string
}

/**
 * Uploads a medium as it arrives: in one PUT if it is small, otherwise in parts. An upload in parts becomes visible
 * only when it is completed, and is aborted if the medium breaks off. `record` runs before the request that makes the
 * medium visible.
 */
export const upload = <E, A, E2>(
  send: Send,
  place: Place,
  bytes: Stream.Stream<Uint8Array, E>,
  record: Effect.Effect<A, E2>
): Effect.Effect<A, StoreUnavailable | E | E2> =>
  Effect.suspend(() => {
    let rest: Uint8Array = new Uint8Array()
    const done: Array<CompletedPart> = []
    let upload: Upload | undefined
    const begin = send((s3, init) => s3.createMultipartUpload(place, init)).pipe(
      Effect.flatMap(({ UploadId }) =>
        UploadId === undefined ? unreadable : Effect.sync(() => (upload = { ...place, UploadId }))
      ),
      // An interruption before the id is recorded would leave an upload that is never aborted
      Effect.uninterruptible
    )
    const add = Effect.fnUntraced(function* (body: Uint8Array) {
      const part = { ...(upload ?? (yield* begin)), PartNumber: done.length + 1, Body: body }
      const { ETag } = yield* send((s3, init) => s3.uploadPart(part, init))
      done.push({ PartNumber: part.PartNumber, ETag })
    })
    const finish = Effect.gen(function* () {
      const whole = upload && { ...upload, MultipartUpload: { Parts: done } }
      const { ETag } = yield* send((s3, init) =>
        whole === undefined
          ? s3.putObject({ ...place, Body: rest }, init)
          : s3.completeMultipartUpload(whole, init)
      )
      if (ETag === undefined) return yield* unreadable
    })
    return Stream.runForEach(partsOf(bytes), (body) =>
      body.length === partBytes ? orUnavailable(add(body)) : Effect.sync(() => (rest = body))
    ).pipe(
      Effect.andThen(
        Effect.suspend(() =>
          upload !== undefined && rest.length > 0 ? orUnavailable(add(rest)) : Effect.void
        )
      ),
      Effect.andThen(record),
      Effect.tap(orUnavailable(finish)),
      Effect.onError(() => (upload === undefined ? Effect.void : abort(send, upload)))
    )
  })

const orUnavailable = <A>(self: Effect.Effect<A, BucketFault>) => Effect.mapError(self, unavailable)

/** Parts of equal size; the last one is smaller and may be empty. */
const partsOf = <E>(bytes: Stream.Stream<Uint8Array, E>): Stream.Stream<Uint8Array, E> =>
  bytes.pipe(
    Stream.concat(Stream.succeed(undefined)),
    Stream.mapAccum(
      () => ({ held: Array.of<Uint8Array>(), size: 0 }),
      (state, piece) => {
        if (piece === undefined) return [state, [Buffer.concat(state.held)]]
        state.held.push(piece)
        state.size += piece.length
        if (state.size < partBytes) return [state, []]
        const whole = Buffer.concat(state.held)
        const parts = Array.from({ length: Math.floor(whole.length / partBytes) }, (_, index) =>
          whole.subarray(index * partBytes, (index + 1) * partBytes)
        )
        const rest = whole.subarray(parts.length * partBytes)
        return [{ held: [rest], size: rest.length }, parts]
      }
    )
  )

/** For example the page of an intermediary. */
const unreadable = Effect.suspend(() =>
  Effect.fail(new BucketFault({ status: Option.some(200), code: "UnreadableResponse" }))
)

const abort = (send: Send, upload: Upload): Effect.Effect<void> =>
  Effect.ignore(send((s3, init) => s3.abortMultipartUpload(upload, init)))

/**
 * Younger uploads may still be written by another process. A bucket does not report when the last part arrived, so the
 * hourly scan waits longer than the one at startup.
 */
export const forgottenAfter = { start: 3_600_000, running: 24 * 3_600_000 } as const

/**
 * Aborts unfinished uploads of dead processes below the prefix. Best effort: it needs the permission to list uploads,
 * and a lifecycle rule of the bucket may do the same.
 */
export const abortForgotten = Effect.fnUntraced(
  function* (send: Send, options: BucketAccess, millis: number) {
    const below = { Bucket: options.bucket, Prefix: keyOf(options, "") }
    const { Uploads } = yield* send((s3, init) => s3.listMultipartUploads(below, init))
    const before = (yield* Clock.currentTimeMillis) - millis
    for (const { Initiated, Key, UploadId } of Uploads ?? []) {
      if (Key === undefined || UploadId === undefined || Initiated === undefined) continue
      if (Initiated.getTime() < before) {
        yield* abort(send, { Bucket: options.bucket, Key, UploadId })
      }
    }
  },
  (self) => Effect.ignore(self)
)
