import { Effect, Schema } from "effect"
import { inflate } from "node:zlib"

/** The font file cannot be read. The renderers then draw boxes instead of letters. */
export class FontUnreadable extends Schema.TaggedError<FontUnreadable>()("FontUnreadable", {
  message: Schema.String
}) {}

const headerBytes = 44
const entryBytes = 20

const viewOf = (bytes: Uint8Array): DataView =>
  new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)

/** Runs on zlib's threads, because the outlines of a large font take 80 ms. */
const inflated = (bytes: Uint8Array): Effect.Effect<Uint8Array, FontUnreadable> =>
  Effect.callback((resume) => {
    inflate(bytes, (error, result) => {
      resume(
        error === null
          ? Effect.succeed(result)
          : Effect.fail(new FontUnreadable({ message: error.message }))
      )
    })
  })

/** One table of a WOFF 1.0 file, decompressed. */
export const table = Effect.fnUntraced(function* (woff: Uint8Array, name: string) {
  const view = viewOf(woff)
  const count = view.getUint16(12)
  for (let index = 0; index < count; index += 1) {
    const entry = headerBytes + index * entryBytes
    const tag = String.fromCharCode(...woff.subarray(entry, entry + 4))
    if (tag !== name) continue
    const offset = view.getUint32(entry + 4)
    const packed = view.getUint32(entry + 8)
    const bytes = woff.subarray(offset, offset + packed)
    return viewOf(packed < view.getUint32(entry + 12) ? yield* inflated(bytes) : bytes)
  }
  return yield* new FontUnreadable({ message: `the font has no table ${name}` })
})
