import { Effect, Result } from "effect"
import { mimesOf } from "./Formats.ts"
import type { AudioFormat, AudioHeader } from "./Formats.ts"
import type { AudioRules } from "./MediaRules.ts"
import { checkedFormat, MediaFault } from "./MediaRules.ts"
import { readMp3 } from "./Mp3.ts"
import { inSlices } from "./Slices.ts"
import type { Sliced } from "./Slices.ts"
import { readWav } from "./Wav.ts"

/** Audio that complies with the rules of its field. */
export interface AudioInfo {
  readonly kind: "audio"
  readonly format: AudioFormat
  readonly mime: string
  /** Without data after the end of the file. */
  readonly content: Uint8Array
  readonly seconds: number
}

const read = function* (
  format: AudioFormat,
  bytes: Uint8Array
): Sliced<Result.Result<AudioHeader, string>> {
  return format === "WAV" ? readWav(bytes) : yield* readMp3(bytes)
}

/**
 * Checks audio by its bytes only. The length is counted, not read from a header.
 * docs/reference/models.md#audio-rules
 */
export const inspectAudio = Effect.fnUntraced(function* (bytes: Uint8Array, rules: AudioRules) {
  const format = checkedFormat(bytes, rules)
  if (Result.isFailure(format)) return yield* new MediaFault({ detail: format.failure })
  const header = yield* inSlices(() => read(format.success, bytes))
  if (Result.isFailure(header)) return yield* new MediaFault({ detail: header.failure })
  const { end, seconds } = header.success
  if (seconds < rules.secondsMin || seconds > rules.secondsMax) {
    const detail = `Expected ${rules.secondsMin} to ${rules.secondsMax} seconds, got ${seconds.toFixed(2)}`
    return yield* new MediaFault({ detail })
  }
  return {
    kind: "audio",
    format: format.success,
    mime: mimesOf[format.success][0],
    content: bytes.subarray(0, end),
    seconds
  } satisfies AudioInfo
})
