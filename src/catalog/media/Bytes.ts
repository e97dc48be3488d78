/** Bytes beyond the end read as 0, so callers must check lengths first. */
export const u8 = (bytes: Uint8Array, at: number): number => bytes[at] ?? 0

export const u16be = (bytes: Uint8Array, at: number): number =>
  u8(bytes, at) * 0x100 + u8(bytes, at + 1)

export const u16le = (bytes: Uint8Array, at: number): number =>
  u8(bytes, at) + u8(bytes, at + 1) * 0x100

export const u24le = (bytes: Uint8Array, at: number): number =>
  u16le(bytes, at) + u8(bytes, at + 2) * 0x1_0000

export const u32be = (bytes: Uint8Array, at: number): number =>
  u16be(bytes, at) * 0x1_0000 + u16be(bytes, at + 2)

export const u32le = (bytes: Uint8Array, at: number): number =>
  u16le(bytes, at) + u16le(bytes, at + 2) * 0x1_0000

export const i32le = (bytes: Uint8Array, at: number): number => u32le(bytes, at) | 0

/** Bytes as Latin-1 text: chunk names and magic numbers. */
export const latin1 = (bytes: Uint8Array, at: number, length: number): string =>
  String.fromCharCode(...bytes.subarray(at, at + length))

export const truncated = "The file is cut off before its end"

/**
 * The end of a RIFF file according to its header, including the padding of an odd size; `undefined` if the file is
 * truncated.
 */
export const endOfRiff = (bytes: Uint8Array): number | undefined => {
  const end = 8 + u32le(bytes, 4)
  // Some writers count padding that they do not write
  return end > bytes.length + 1 ? undefined : Math.min(end + (end % 2), bytes.length)
}
