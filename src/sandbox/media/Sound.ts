/** The sample rate of OpenAI's speech, which has 16 bits per sample and one channel. */
export const hertz = 24_000
const sampleBytes = 2

/** The usual speed of speech. The length of the audio is limited, so that a small request cannot cost much. */
const charactersPerSecond = 15
const secondsMin = 0.2
const secondsMax = 10

/** The duration of the simulated speech for a text. */
export const secondsOf = (text: string): number =>
  Math.min(secondsMax, Math.max(secondsMin, text.length / charactersPerSecond))

const lowestHertz = 160
const steps = 12
const volume = 6000

/** One tone per word. The length of the word determines its duration, the first letter its pitch. */
const tonesOf = (
  text: string
): ReadonlyArray<{ readonly hertz: number; readonly part: number }> => {
  const words = text.split(/\s+/u).filter((word) => word !== "")
  const all = words.reduce((sum, word) => sum + word.length, 0)
  return words.map((word) => ({
    hertz: lowestHertz * 2 ** (((word.codePointAt(0) ?? 0) % steps) / steps),
    part: word.length / all
  }))
}

/** Samples of a melody, the same for the same text. */
export const samplesOf = (text: string): Buffer => {
  const total = Math.floor(secondsOf(text) * hertz)
  const bytes = Buffer.alloc(total * sampleBytes)
  let start = 0
  for (const tone of tonesOf(text)) {
    const length = Math.min(total - start, Math.floor(tone.part * total))
    for (let at = 0; at < length; at += 1) {
      // Each tone swells and fades, so that words can be told apart
      const swell = Math.sin((Math.PI * at) / length)
      const value = Math.sin((2 * Math.PI * tone.hertz * at) / hertz) * swell * volume
      bytes.writeInt16LE(Math.round(value), (start + at) * sampleBytes)
    }
    start += length
  }
  return bytes
}

/**
 * A frame of MPEG-2 layer III at 24 kHz and 32 kilobits per second: 24 ms of a 750 Hz tone, exactly 18 periods, so that
 * repeated frames form one continuous tone. Created for this purpose with LAME 3.
 */
const beep = Buffer.from(
  "//NExM4IYx4UALgKzDCqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqr//4R6kQZCpf4wN/////+O/////9Q3/////1H/////+Fj6TEFNRTQu",
  "base64"
)
const frameSeconds = 0.024
/** Frames whose audio refers to earlier frames that do not exist; decoders skip them. */
const silentFrames = 3

/** An MP3 file with a tone instead of words, because the gateway has no encoder. */
export const mp3Of = (text: string): Buffer => {
  const frames = silentFrames + Math.ceil(secondsOf(text) / frameSeconds)
  return Buffer.concat(Array.from({ length: frames }, () => beep))
}
