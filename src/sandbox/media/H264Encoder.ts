import { BitWriter } from "./BitWriter.ts"
import { blockSamples, repeatsAbove, repeatsLeft } from "./Picture.ts"
import type { Picture, Plane } from "./Picture.ts"

/**
 * A lossless H.264 encoder for drawn pictures (ITU-T H.264, Constrained Baseline profile). A macroblock that its left
 * or upper neighbor predicts exactly takes one byte; all others are sent as samples (I_PCM, 384 bytes). There is no
 * transform and no rounding, so the result is the same on every runtime, and every player decodes the two types. The
 * deblocking filter is off.
 */

/** Unit types of the standard's table 7-1. */
const unitDelta = 1
const unitKey = 5
const unitSequence = 7
const unitPicture = 8

/** Macroblock types of table 7-11. In a P slice, five other types come before them. */
const typePredicted = 1
const typePcm = 25
const typesBeforeIntra = 5

const frameNumberBits = 8

/** Header and payload. Inserts a 3 between two zeros and a small byte, so that no start code occurs. */
const unit = (type: number, payload: Uint8Array): Uint8Array => {
  const bytes = new Uint8Array(1 + Math.ceil(payload.length * 1.5))
  bytes[0] = 0x60 | type
  let length = 1
  let zeros = 0
  for (const byte of payload) {
    if (zeros === 2 && byte <= 3) {
      bytes[length] = 3
      length += 1
      zeros = 0
    }
    bytes[length] = byte
    length += 1
    zeros = byte === 0 ? zeros + 1 : 0
  }
  return bytes.slice(0, length)
}

/** Levels of table A-1: frame size in macroblocks, then macroblocks per second. */
const levels = [
  [1620, 40_500, 30],
  [3600, 108_000, 31],
  [8192, 245_760, 40],
  [36_864, 983_040, 51]
] as const

export const levelOf = (macroblocks: number, framesPerSecond: number): number =>
  levels.find(
    ([size, rate]) => macroblocks <= size && macroblocks * framesPerSecond <= rate
  )?.[2] ?? 52

/** Profile, constraints and level, also in the file's `avcC` box. */
export const profileBytes = (level: number): readonly [number, number, number] => [66, 0xc0, level]

/** The sequence parameter set: size with cropping, BT.709 colors, frame rate, no reordering. */
export const sequenceParameters = (
  video: { readonly width: number; readonly height: number; readonly framesPerSecond: number },
  level: number
): Uint8Array => {
  const columns = Math.ceil(video.width / 16)
  const rows = Math.ceil(video.height / 16)
  const bits = new BitWriter()
  for (const byte of profileBytes(level)) bits.bits(byte, 8)
  bits.ue(0, frameNumberBits - 4, 2, 1).bits(0, 1)
  bits.ue(columns - 1, rows - 1).bits(0b111, 3)
  bits.ue(0, columns * 8 - video.width / 2, 0, rows * 8 - video.height / 2)
  bits.bits(1, 1).bits(0b00_1, 3).bits(5, 3).bits(0, 1).bits(1, 1)
  bits.bits(1, 8).bits(1, 8).bits(1, 8).bits(0, 1)
  bits
    .bits(1, 1)
    .bits(1, 32)
    .bits(video.framesPerSecond * 2, 32)
    .bits(1, 1)
  bits.bits(0b000, 3).bits(0b11, 2).ue(0, 0, 11, 11, 0, 1)
  return unit(unitSequence, bits.finish())
}

/** The picture parameter set: CAVLC, deblocking under the slice's control. */
export const pictureParameters = (): Uint8Array => {
  const bits = new BitWriter().ue(0, 0).bits(0b00, 2).ue(0, 0, 0).bits(0b000, 3).ue(0, 0, 0)
  return unit(unitPicture, bits.bits(0b100, 3).finish())
}

/** The neighbor that predicts the block, numbered as for luma: 0 above, 1 left. */
const predictorOf = (planes: ReadonlyArray<Plane>, column: number, row: number, size: number) => {
  if (planes.every((plane) => repeatsLeft(plane, column, row, size))) return 1
  return planes.every((plane) => repeatsAbove(plane, column, row, size)) ? 0 : undefined
}

const writePcm = (bits: BitWriter, picture: Picture, column: number, row: number): void => {
  bits.align().bytes(blockSamples(picture.luma, column, row, 16))
  bits
    .bytes(blockSamples(picture.blue, column, row, 8))
    .bytes(blockSamples(picture.red, column, row, 8))
}

/** A frame that refers to no other frame: the first of the video. */
export const keyFrame = (picture: Picture): Uint8Array => {
  const bits = new BitWriter().ue(0, 7, 0).bits(0, frameNumberBits).ue(0).bits(0b00, 2).ue(0, 1)
  const isPcm = new Uint8Array(picture.columns * picture.rows)
  for (let row = 0; row < picture.rows; row += 1) {
    for (let column = 0; column < picture.columns; column += 1) {
      const at = row * picture.columns + column
      const luma = predictorOf([picture.luma], column, row, 16)
      const chroma = predictorOf([picture.blue, picture.red], column, row, 8)
      if (luma === undefined || chroma === undefined) {
        isPcm[at] = 1
        writePcm(bits.ue(typePcm), picture, column, row)
        continue
      }
      bits.ue(typePredicted + luma, chroma === 1 ? 1 : 2, 0)
      // "No coefficients" (table 9-5) depends on how many the neighbors have; I_PCM counts as 16
      const hasPcmNeighbour =
        (column > 0 && isPcm[at - 1] === 1) || (row > 0 && isPcm[at - picture.columns] === 1)
      if (hasPcmNeighbour) bits.bits(0b000011, 6)
      else bits.bits(1, 1)
    }
  }
  return unit(unitKey, bits.finish())
}

/** A macroblock that changes, with its single color. */
export interface Change {
  /** Number of the macroblock, row by row. */
  readonly macroblock: number
  readonly color: readonly [luma: number, blue: number, red: number]
}

/** A frame that repeats the previous one except for the changes, in ascending order. */
export const deltaFrame = (
  frame: number,
  macroblocks: number,
  changes: ReadonlyArray<Change>
): Uint8Array => {
  const bits = new BitWriter().ue(0, 5, 0).bits(frame % (1 << frameNumberBits), frameNumberBits)
  bits.bits(0b000, 3).ue(0, 1)
  let next = 0
  for (const { macroblock, color } of changes) {
    bits.ue(macroblock - next, typesBeforeIntra + typePcm).align()
    for (const [place, samples] of [256, 64, 64].entries()) {
      bits.bytes(new Uint8Array(samples).fill(color[place] ?? 128))
    }
    next = macroblock + 1
  }
  if (next < macroblocks) bits.ue(macroblocks - next)
  return unit(unitDelta, bits.finish())
}
