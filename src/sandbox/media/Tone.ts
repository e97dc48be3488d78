import { wavOf } from "./WavFile.ts"

const samplesPerSecond = 8000

/** The frequencies of the lowest and the highest tone, in hertz. */
const lowest = 220
const octave = 220

/** A soft tone as a WAV file (PCM, 16 bits, mono). The seed determines its pitch. */
export const renderTone = (plan: {
  readonly seconds: number
  readonly seed: number
}): Uint8Array => {
  const samples = plan.seconds * samplesPerSecond
  const bytes = Buffer.alloc(samples * 2)
  const step = (2 * Math.PI * (lowest + (plan.seed % octave))) / samplesPerSecond
  for (let n = 0; n < samples; n += 1) {
    bytes.writeInt16LE(Math.round(Math.sin(n * step) * 6000), n * 2)
  }
  return wavOf(bytes, samplesPerSecond)
}
