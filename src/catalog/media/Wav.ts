import { Result } from "effect"
import { endOfRiff, latin1, truncated, u16le, u32le } from "./Bytes.ts"
import type { AudioHeader } from "./Formats.ts"
import { makePartsCount, tooManyParts } from "./Slices.ts"

/** PCM, float, A-law and µ-law: encodings whose duration follows from their bytes. */
const codings = new Set([1, 3, 6, 7])
const extensible = 0xfffe

interface Coding {
  readonly bytesPerSecond: number
}

const readCoding = (
  bytes: Uint8Array,
  at: number,
  length: number
): Result.Result<Coding, string> => {
  const tag = u16le(bytes, at)
  const coding = tag === extensible && length >= 26 ? u16le(bytes, at + 24) : tag
  if (length < 16 || !codings.has(coding)) {
    return Result.fail("The WAV contains compressed audio; expected PCM")
  }
  const [channels, rate] = [u16le(bytes, at + 2), u32le(bytes, at + 4)]
  const [bytesPerSecond, block] = [u32le(bytes, at + 8), u16le(bytes, at + 12)]
  const sampleBytes = Math.ceil(u16le(bytes, at + 14) / 8)
  const isConsistent = block === channels * sampleBytes && bytesPerSecond === rate * block
  return isConsistent && bytesPerSecond > 0
    ? Result.succeed({ bytesPerSecond })
    : Result.fail("The numbers in the WAV header are inconsistent")
}

/** Reads a WAV chunk by chunk to its end; the duration is counted from the bytes. */
export const readWav = (bytes: Uint8Array): Result.Result<AudioHeader, string> => {
  const end = endOfRiff(bytes)
  if (end === undefined) return Result.fail(truncated)
  let coding: Coding | undefined
  let seconds: number | undefined
  const isFew = makePartsCount()
  for (let at = 12; at + 8 <= end;) {
    if (!isFew()) return Result.fail(tooManyParts)
    const type = latin1(bytes, at, 4)
    const length = u32le(bytes, at + 4)
    if (at + 8 + length > end) {
      // Tags may follow the audio, and some writers do not align them
      if (seconds !== undefined) break
      return Result.fail(truncated)
    }
    if (type === "fmt ") {
      const read = readCoding(bytes, at + 8, length)
      if (Result.isFailure(read)) return Result.fail(read.failure)
      coding = read.success
    }
    if (type === "data") {
      if (coding === undefined || seconds !== undefined) {
        return Result.fail("The chunks of the WAV are out of order")
      }
      seconds = length / coding.bytesPerSecond
    }
    at += 8 + length + (length % 2)
  }
  return seconds === undefined
    ? Result.fail("The WAV contains no audio")
    : Result.succeed({ format: "WAV", seconds, end })
}
