import { Effect, Sink, Stream } from "effect"
import type { Scope } from "effect"
import { sniff } from "../catalog/media/Formats.ts"
import type { Format } from "../catalog/media/Formats.ts"
import { resultBytesMax } from "../domain/Limits.ts"
import type { Download } from "../vendors/VendorClient.ts"
import { VendorError } from "../vendors/VendorError.ts"

/** A result that is being copied. */
export interface ResultStream {
  /** By its first bytes where they tell, else as declared. */
  readonly mime: string
  readonly stream: Stream.Stream<Uint8Array, VendorError>
}

/**
 * A download whose first bytes are those of a medium, and that ends beyond `resultBytesMax`. Where
 * something else comes (the page of an error, nothing at all) it fails as `LOST`.
 */
export const resultStream = Effect.fnUntraced(function* ({
  announced = 0,
  mime: declared,
  stream
}: Download): Effect.fn.Return<ResultStream, VendorError, Scope.Scope> {
  if (announced > resultBytesMax) return yield* tooLarge
  const [head, rest] = yield* Stream.peel(stream, firstPieces)
  const format = sniff(head)
  if (!isMedium(head, format, declared)) {
    return yield* lost(head.length === 0 ? "it is empty" : "its host sent something else")
  }
  return {
    mime: (format === undefined ? undefined : mimes[format]) ?? declared,
    stream: bounded(Stream.concat(Stream.succeed(head), rest))
  }
})

/** More than any magic is long. Bytes. */
const headBytes = 16

const firstPieces = Sink.reduceWhile<Uint8Array, Uint8Array>(
  () => new Uint8Array(),
  (head) => head.length < headBytes,
  (head, piece) => (head.length === 0 ? piece : Buffer.concat([head, piece]))
)

/** What a result may be, and how it is served. */
const mimes: { readonly [format in Format]?: string } = {
  JPEG: "image/jpeg",
  PNG: "image/png",
  BMP: "image/bmp",
  WEBP: "image/webp",
  GIF: "image/gif",
  MP4: "video/mp4",
  WAV: "audio/wav",
  MP3: "audio/mpeg",
  Ogg: "audio/ogg",
  FLAC: "audio/flac"
}

const known: ReadonlySet<string> = new Set(Object.values(mimes))

/**
 * A picture that is declared as a format with magic bytes has them; what is declared as another may be
 * anything but a document.
 */
const isMedium = (head: Uint8Array, format: Format | undefined, declared: string): boolean => {
  if (head.length === 0) return false
  if (format === "SVG, XML or HTML") return declared === "image/svg+xml"
  if (format === "PDF" || format === "ZIP") return false
  if (format !== undefined) return true
  const isText = head[0] === 0x7b || head[0] === 0x5b
  return !isText && !(declared.startsWith("image/") && known.has(declared))
}

const bounded = (stream: Stream.Stream<Uint8Array, VendorError>) => {
  let size = 0
  return Stream.mapEffect(stream, (piece) => {
    size += piece.length
    return size > resultBytesMax ? Effect.fail(tooLarge) : Effect.succeed(piece)
  })
}

/** The result of a job cannot be had. */
export const lost = (why: string): VendorError =>
  new VendorError({ class: "LOST", message: `The result could not be copied: ${why}` })

/** Asked for again it is no smaller. */
const tooLarge = new VendorError({
  class: "FAILED",
  message: `it is larger than ${resultBytesMax} bytes`
})
