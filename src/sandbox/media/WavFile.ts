const headBytes = 44
const sampleBytes = 2

/** A WAV file with these samples: PCM, 16 bits, one channel. */
export const wavOf = (samples: Buffer, hertz: number): Buffer => {
  const header = Buffer.alloc(headBytes)
  header.write("RIFF", 0, "latin1")
  header.writeUInt32LE(headBytes - 8 + samples.length, 4)
  header.write("WAVEfmt ", 8, "latin1")
  header.writeUInt32LE(16, 16)
  header.writeUInt16LE(1, 20)
  header.writeUInt16LE(1, 22)
  header.writeUInt32LE(hertz, 24)
  header.writeUInt32LE(hertz * sampleBytes, 28)
  header.writeUInt16LE(sampleBytes, 32)
  header.writeUInt16LE(8 * sampleBytes, 34)
  header.write("data", 36, "latin1")
  header.writeUInt32LE(samples.length, 40)
  return Buffer.concat([header, samples])
}
