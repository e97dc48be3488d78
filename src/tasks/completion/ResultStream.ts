import { Cause, Effect, Pull, Stream } from "effect"
import type { Array as Arr, Scope } from "effect"
import { isServed, mimeOf, sniff } from "../../catalog/media/Formats.ts"
import type { Format } from "../../catalog/media/Formats.ts"
import { resultBytesMax } from "../../domain/limits/Limits.ts"
import type { ResultKind } from "../../domain/task/Task.ts"
import type { Download } from "../../vendors/VendorClient.ts"
import { VendorError } from "../../vendors/VendorError.ts"

/** A result that is being copied. */
export interface ResultStream {
  /** Detected from the first bytes; otherwise as the host declared it. */
  readonly mime: string
  readonly stream: Stream.Stream<Uint8Array, VendorError>
}

/**
 * Returns the download if its first bytes match the expected kind of result. The stream fails beyond `resultBytesMax`.
 * Fails as `LOST` if the host sends anything else, such as an error page or an empty body.
 */
export const resultStream = Effect.fnUntraced(function* (
  { announced = 0, mime: declared, stream }: Download,
  kind: ResultKind
): Effect.fn.Return<ResultStream, VendorError, Scope.Scope> {
  if (announced > resultBytesMax) return yield* tooLarge
  const pull = yield* Stream.toPull(stream)
  const [head, rest] = yield* headOf(pull)
  const format = sniff(head)
  if (!isOfKind(kind, head, format, declared)) {
    return yield* lost(head.length === 0 ? "it is empty" : "its host sent something else")
  }
  return {
    mime: kind === "documents" ? documentMime : mimeIn(format, declared),
    stream: bounded(head, rest)
  }
})

const documentMime = "application/json"

const mimeIn = (format: Format | undefined, declared: string): string =>
  (format === undefined ? undefined : mimeOf(format)) ?? declared

/** Longer than the signature of every known format, in bytes. */
const headBytes = 16

type ChunkPull = Pull.Pull<Arr.NonEmptyReadonlyArray<Uint8Array>, VendorError>

/** The first chunks as one, and the chunks after them. `undefined`: the stream has ended. */
const headOf = (
  pull: ChunkPull
): Effect.Effect<readonly [Uint8Array, ChunkPull | undefined], VendorError> => {
  const more = (
    head: Uint8Array
  ): Effect.Effect<readonly [Uint8Array, ChunkPull | undefined], VendorError> =>
    head.length >= headBytes
      ? Effect.succeed([head, pull])
      : pull.pipe(
          Effect.map((chunks) =>
            head.length === 0 && chunks.length === 1 ? chunks[0] : Buffer.concat([head, ...chunks])
          ),
          Effect.flatMap(more),
          Pull.catchDone(() => Effect.succeed([head, undefined] as const))
        )
  return more(new Uint8Array())
}

const isJsonText = (head: Uint8Array): boolean => head[0] === 0x7b || head[0] === 0x5b

const isOfKind = (
  kind: ResultKind,
  head: Uint8Array,
  format: Format | undefined,
  declared: string
): boolean => {
  if (kind === "documents") return isJsonText(head)
  return kind === "meshes" ? isMesh(head, format, declared) : isMedium(head, format, declared)
}

/**
 * 3D models come in many formats, including text and archives. HTML pages and JSON other than glTF are rejected as
 * errors.
 */
const isMesh = (head: Uint8Array, format: Format | undefined, declared: string): boolean => {
  if (head.length === 0 || format === "SVG, XML or HTML" || format === "PDF") return false
  return !isJsonText(head) || declared === "model/gltf+json"
}

/**
 * A download that is declared as a known image format must have its signature; any other declared type may be
 * anything except a document.
 */
const isMedium = (head: Uint8Array, format: Format | undefined, declared: string): boolean => {
  if (head.length === 0) return false
  if (format === "SVG, XML or HTML") return declared === "image/svg+xml"
  if (format === "PDF" || format === "ZIP") return false
  if (format !== undefined) return true
  return !isJsonText(head) && !(declared.startsWith("image/") && isServed(declared))
}

const bounded = (
  head: Uint8Array,
  rest: ChunkPull | undefined
): Stream.Stream<Uint8Array, VendorError> => {
  let size = 0
  const counted = (chunks: Arr.NonEmptyReadonlyArray<Uint8Array>) => {
    for (const { length } of chunks) size += length
    return size > resultBytesMax ? Effect.fail(tooLarge) : Effect.succeed(chunks)
  }
  const remaining = rest === undefined ? Cause.done() : Effect.flatMap(rest, counted)
  return Stream.fromPull(
    Effect.sync(() => {
      let next: ChunkPull = counted([head])
      return Effect.suspend(() => {
        const pulled = next
        next = remaining
        return pulled
      })
    })
  )
}

/** The error for a job's result that cannot be downloaded. */
export const lost = (why: string): VendorError =>
  new VendorError({ class: "LOST", message: `The result could not be copied: ${why}` })

/** Not `LOST`: a second download would be just as large, so it is not retried. */
const tooLarge = new VendorError({
  class: "FAILED",
  message: `it is larger than ${resultBytesMax} bytes`
})
