import type { AudioFormat, ImageFormat } from "./Sniff.ts"

/** What an audio file holds. */
export interface AudioHeader {
  readonly format: AudioFormat
  readonly seconds: number
  /** By how much an encoder may have lengthened the sound: MP3 comes in whole frames. */
  readonly slackSeconds: number
}

/** What an image's own header says. */
export interface ImageHeader {
  readonly format: ImageFormat
  /** Pixels. */
  readonly width: number
  readonly height: number
  /** It has an alpha channel or a transparent colour, whether or not a pixel uses it. */
  readonly alpha: boolean
}
