/**
 * Writes MP4 files (ISO/IEC 14496-12 and -14) with the index before the media, so that players can start before the
 * whole file is loaded. Does not read the clock, so equal tracks give equal bytes; the muxers on npm write the current
 * time into each file.
 */

export interface Track {
  readonly samples: ReadonlyArray<Uint8Array>
  /** Runs of samples of equal duration: the number of samples, and the ticks of each. */
  readonly durations: ReadonlyArray<readonly [count: number, ticks: number]>
  /** The sample description: an `avc1` or `mp4a` box. */
  readonly sampleEntry: Uint8Array
  /** Numbers of the key frames, from 1; empty if every sample is a key frame. */
  readonly keySamples: ReadonlyArray<number>
  /** Pixels; absent for sound. */
  readonly size?: { readonly width: number; readonly height: number }
}

const concat = (parts: ReadonlyArray<Uint8Array>): Uint8Array => {
  const bytes = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0))
  let at = 0
  for (const part of parts) {
    bytes.set(part, at)
    at += part.length
  }
  return bytes
}

export const ascii = (text: string): Uint8Array => Uint8Array.from(text, (it) => it.charCodeAt(0))

export const bytes = (...values: ReadonlyArray<number>): Uint8Array => Uint8Array.from(values)

const numbers = (size: 2 | 4, values: ReadonlyArray<number>): Uint8Array => {
  const view = new DataView(new ArrayBuffer(values.length * size))
  for (const [index, value] of values.entries()) {
    if (size === 2) view.setUint16(index * 2, value)
    else view.setUint32(index * 4, value)
  }
  return new Uint8Array(view.buffer)
}

export const u16 = (...values: ReadonlyArray<number>): Uint8Array => numbers(2, values)
export const u32 = (...values: ReadonlyArray<number>): Uint8Array => numbers(4, values)

export const box = (type: string, ...content: ReadonlyArray<Uint8Array>): Uint8Array => {
  const body = concat(content)
  return concat([u32(body.length + 8), ascii(type), body])
}

/** No rotation, no scaling. */
const matrix = u32(0x10000, 0, 0, 0, 0x10000, 0, 0, 0, 0x4000_0000)

const ticksOf = (track: Track): number =>
  track.durations.reduce((sum, [count, ticks]) => sum + count * ticks, 0)

const movieHeader = (ticksPerSecond: number, ticks: number, tracks: number): Uint8Array =>
  box(
    "mvhd",
    u32(0, 0, 0, ticksPerSecond, ticks, 0x10000),
    u16(0x100, 0),
    u32(0, 0),
    matrix,
    u32(0, 0, 0, 0, 0, 0, tracks + 1)
  )

const trackHeader = (track: Track, id: number): Uint8Array =>
  box(
    "tkhd",
    u32(3, 0, 0, id, 0, ticksOf(track), 0, 0),
    u16(0, 0, track.size === undefined ? 0x100 : 0, 0),
    matrix,
    u32((track.size?.width ?? 0) * 0x10000, (track.size?.height ?? 0) * 0x10000)
  )

/** The samples of a track are one chunk. */
const sampleTable = (track: Track, offset: number): Uint8Array =>
  box(
    "stbl",
    box("stsd", u32(0, 1), track.sampleEntry),
    box("stts", u32(0, track.durations.length, ...track.durations.flat())),
    ...(track.keySamples.length === 0
      ? []
      : [box("stss", u32(0, track.keySamples.length, ...track.keySamples))]),
    box("stsc", u32(0, 1, 1, track.samples.length, 1)),
    box("stsz", u32(0, 0, track.samples.length, ...track.samples.map((it) => it.length))),
    box("stco", u32(0, 1, offset))
  )

const trackBox = (track: Track, id: number, ticksPerSecond: number, offset: number): Uint8Array => {
  const isSound = track.size === undefined
  return box(
    "trak",
    trackHeader(track, id),
    box(
      "mdia",
      // 0x55c4 is the language "und"
      box("mdhd", u32(0, 0, 0, ticksPerSecond, ticksOf(track)), u16(0x55c4, 0)),
      box("hdlr", u32(0, 0), ascii(isSound ? "soun" : "vide"), u32(0, 0, 0), bytes(0)),
      box(
        "minf",
        isSound ? box("smhd", u32(0, 0)) : box("vmhd", u32(1, 0, 0)),
        box("dinf", box("dref", u32(0, 1), box("url ", u32(1)))),
        sampleTable(track, offset)
      )
    )
  )
}

const index = (
  tracks: ReadonlyArray<Track>,
  ticksPerSecond: number,
  mediaOffset: number
): Uint8Array => {
  let offset = mediaOffset
  const boxes = tracks.map((track, number) => {
    const made = trackBox(track, number + 1, ticksPerSecond, offset)
    offset += track.samples.reduce((sum, sample) => sum + sample.length, 0)
    return made
  })
  const ticks = Math.max(...tracks.map(ticksOf))
  return box("moov", movieHeader(ticksPerSecond, ticks, tracks.length), ...boxes)
}

/** The whole file. All tracks use the same ticks. */
export const mp4 = (tracks: ReadonlyArray<Track>, ticksPerSecond: number): Uint8Array => {
  const type = box("ftyp", ascii("isom"), u32(0x200), ascii("isomiso2avc1mp41"))
  const media = box("mdat", ...tracks.flatMap((track) => track.samples))
  // The length of the index does not depend on the offset, so the index can be built twice
  const mediaOffset = type.length + index(tracks, ticksPerSecond, 0).length + 8
  return concat([type, index(tracks, ticksPerSecond, mediaOffset), media])
}
