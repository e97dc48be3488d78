import { Effect, Result } from "effect"
import { mimesOf } from "./Formats.ts"
import type { AudioFormat, AudioHeader } from "./Formats.ts"
import type { AudioRules } from "./MediaRules.ts"
import { checkedFormat, MediaFault } from "./MediaRules.ts"
import { readMp3 } from "./Mp3.ts"
import { readWav } from "./Wav.ts"

/** Audio that complies with the rules of its field. */
export interface AudioInfo {
  readonly kind: "audio"
  readonly format: AudioFormat
  readonly mime: string
  readonly bytes: number
  readonly seconds: number
}

const readers = {
  WAV: readWav,
  MP3: readMp3
} satisfies Record<AudioFormat, (bytes: Uint8Array) => Result.Result<AudioHeader, string>>

/**
 * Checks audio by its bytes only. The length is counted, not read from a header.
 * docs/reference/models.md#audio-rules
 */
export const inspectAudio = (
  bytes: Uint8Array,
  rules: AudioRules
): Effect.Effect<AudioInfo, MediaFault> => {
  const checked = checkedFormat(bytes, rules).pipe(
    Result.flatMap((format) => readers[format](bytes)),
    Result.flatMap(({ format, seconds }): Result.Result<AudioInfo, string> =>
      seconds < rules.secondsMin || seconds > rules.secondsMax
        ? Result.fail(
            `Expected ${rules.secondsMin} to ${rules.secondsMax} seconds, got ${seconds.toFixed(2)}`
          )
        : Result.succeed({
            kind: "audio",
            format,
            mime: mimesOf[format][0],
            bytes: bytes.length,
            seconds
          })
    )
  )
  return Effect.fromResult(Result.mapError(checked, (detail) => new MediaFault({ detail })))
}
