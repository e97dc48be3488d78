import { Clock, Effect, Schema, Stream } from "effect"
import { StoreUnavailable } from "../domain/Problem.ts"
import { drop, refusedBy, textOf } from "./S3Requests.ts"
import type { Send } from "./S3Requests.ts"

/** What is held of a medium at a time. S3 takes no smaller parts but the last (5 MiB). Bytes. */
const partBytes = 8 * 1024 * 1024

/**
 * Puts a medium as it comes: one PUT when it is small, else an upload in parts, which is visible only
 * once it is completed, and is aborted when the medium breaks off.
 */
export const upload = <E>(
  send: Send,
  key: string,
  bytes: Stream.Stream<Uint8Array, E>
): Effect.Effect<void, StoreUnavailable | E> =>
  Effect.suspend(() => {
    const pieces = new Pieces()
    let parts: Parts | undefined
    // Interrupted before it is noted nobody would know what to abort
    const begun = begin(send, key).pipe(
      Effect.tap((upload) => Effect.sync(() => (parts = upload))),
      Effect.uninterruptible
    )
    const part = Effect.fnUntraced(function* (body: Uint8Array<ArrayBuffer>) {
      yield* sendPart(send, key, parts ?? (yield* begun), body)
    })
    return Stream.runForEach(bytes, (piece) => Effect.forEach(pieces.add(piece), part)).pipe(
      Effect.andThen(
        Effect.suspend(() => {
          const rest = pieces.rest()
          if (parts === undefined) return putWhole(send, key, rest)
          const last = rest.length === 0 ? Effect.void : sendPart(send, key, parts, rest)
          return Effect.andThen(last, complete(send, key, parts))
        })
      ),
      Effect.onError(() => (parts === undefined ? Effect.void : abort(send, key, parts.uploadId)))
    )
  })

/** Cuts what comes into parts of one size. */
class Pieces {
  #held: Array<Uint8Array> = []
  #size = 0

  /** The parts that are complete now. */
  add(piece: Uint8Array): ReadonlyArray<Uint8Array<ArrayBuffer>> {
    this.#held.push(piece)
    this.#size += piece.length
    if (this.#size < partBytes) return []
    const whole = this.rest()
    const count = Math.floor(whole.length / partBytes)
    const rest = whole.subarray(count * partBytes)
    this.#held = [rest]
    this.#size = rest.length
    return Array.from({ length: count }, (_, index) =>
      whole.subarray(index * partBytes, (index + 1) * partBytes)
    )
  }

  rest(): Uint8Array<ArrayBuffer> {
    const whole = new Uint8Array(this.#size)
    let at = 0
    for (const piece of this.#held) {
      whole.set(piece, at)
      at += piece.length
    }
    return whole
  }
}

/** An upload under way. */
interface Parts {
  readonly uploadId: string
  /** Of the parts that are there, in order. */
  readonly tags: Array<string>
}

const putWhole = Effect.fnUntraced(function* (
  send: Send,
  key: string,
  body: Uint8Array<ArrayBuffer>
) {
  const answer = yield* send("PUT", key, { body })
  if (!answer.ok) return yield* refusedBy(answer)
  yield* drop(answer)
})

const begin = Effect.fnUntraced(function* (
  send: Send,
  key: string
): Effect.fn.Return<Parts, StoreUnavailable> {
  const answer = yield* send("POST", `${key}?uploads`)
  if (!answer.ok) return yield* refusedBy(answer)
  const uploadId = tagOf(yield* textOf(answer), "UploadId")
  return uploadId === undefined ? yield* unreadable("began no upload") : { uploadId, tags: [] }
})

const sendPart = Effect.fnUntraced(function* (
  send: Send,
  key: string,
  { tags, uploadId }: Parts,
  body: Uint8Array<ArrayBuffer>
) {
  const query = new URLSearchParams({ partNumber: String(tags.length + 1), uploadId })
  const answer = yield* send("PUT", `${key}?${query}`, { body })
  if (!answer.ok) return yield* refusedBy(answer)
  yield* drop(answer)
  tags.push(answer.headers.get("etag") ?? "")
})

const complete = Effect.fnUntraced(function* (send: Send, key: string, { tags, uploadId }: Parts) {
  const list = tags.map(
    (tag, index) => `<Part><PartNumber>${index + 1}</PartNumber><ETag>${tag}</ETag></Part>`
  )
  const body = `<CompleteMultipartUpload>${list.join("")}</CompleteMultipartUpload>`
  const answer = yield* send("POST", `${key}?${new URLSearchParams({ uploadId })}`, {
    body,
    headers: { "content-type": "application/xml" }
  })
  if (!answer.ok) return yield* refusedBy(answer)
  // A failure may be told inside a 200, which is sent before the parts are joined
  if (!(yield* textOf(answer)).includes("CompleteMultipartUploadResult")) {
    return yield* unreadable("did not join the parts of an upload")
  }
})

const abort = (send: Send, key: string, uploadId: string): Effect.Effect<void> =>
  send("DELETE", `${key}?${new URLSearchParams({ uploadId })}`).pipe(
    Effect.flatMap(drop),
    Effect.ignore
  )

/** Younger ones may still be written by another process. */
const forgottenMillis = 3_600_000

/**
 * Aborts what processes that died were uploading below the prefix. Best effort: it takes the right to
 * list uploads, and a rule of the bucket may do the same.
 */
export const abortForgotten = Effect.fnUntraced(
  function* (send: Send, prefix: string) {
    const query = new URLSearchParams({ uploads: "", prefix })
    const answer = yield* send("GET", `?${query}`)
    if (!answer.ok) return yield* refusedBy(answer)
    const before = (yield* Clock.currentTimeMillis) - forgottenMillis
    const uploads = (yield* textOf(answer)).match(/<Upload>.*?<\/Upload>/gsu) ?? []
    for (const text of uploads) {
      const upload = decodeUpload({
        key: tagOf(text, "Key"),
        uploadId: tagOf(text, "UploadId"),
        at: Date.parse(tagOf(text, "Initiated") ?? "")
      })
      if (upload._tag === "Some" && upload.value.at < before) {
        yield* abort(send, upload.value.key, upload.value.uploadId)
      }
    }
  },
  (self) => Effect.ignore(self)
)

const decodeUpload = Schema.decodeUnknownOption(
  Schema.Struct({ key: Schema.String, uploadId: Schema.String, at: Schema.Finite })
)

const tagOf = (xml: string, name: string): string | undefined =>
  new RegExp(`<${name}>([^<]+)</${name}>`, "u").exec(xml)?.[1]

const unreadable = (what: string) =>
  new StoreUnavailable({ cause: new Error(`The artifact bucket ${what}`) })
