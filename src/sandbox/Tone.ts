const samplesPerSecond = 8000

/** Of the lowest and the highest tone, in hertz. */
const lowest = 220
const octave = 220

/** A soft tone as a WAV file (PCM, 16 bits, mono); the seed decides its pitch. */
export const renderTone = (plan: {
  readonly seconds: number
  readonly seed: number
}): Uint8Array => {
  const samples = plan.seconds * samplesPerSecond
  const file = Buffer.alloc(44 + samples * 2)
  file.write("RIFF", 0, "latin1")
  file.writeUInt32LE(36 + samples * 2, 4)
  file.write("WAVEfmt ", 8, "latin1")
  file.writeUInt32LE(16, 16)
  file.writeUInt16LE(1, 20)
  file.writeUInt16LE(1, 22)
  file.writeUInt32LE(samplesPerSecond, 24)
  file.writeUInt32LE(samplesPerSecond * 2, 28)
  file.writeUInt16LE(2, 32)
  file.writeUInt16LE(16, 34)
  file.write("data", 36, "latin1")
  file.writeUInt32LE(samples * 2, 40)
  const step = (2 * Math.PI * (lowest + (plan.seed % octave))) / samplesPerSecond
  for (let n = 0; n < samples; n += 1) {
    file.writeInt16LE(Math.round(Math.sin(n * step) * 6000), 44 + n * 2)
  }
  return file
}
