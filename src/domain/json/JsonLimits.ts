import { textCodePointsMax } from "../limits/Limits.ts"

/**
 * Bounds of the work to parse a JSON body in one turn of the event loop, at most about 20 ms: structural tokens,
 * nesting levels, and bytes outside long strings, which are not parsed. docs/reference/http.md#complex-json
 */
export const jsonWeightMax = 400_000
export const jsonDepthMax = 128
export const jsonOutlineBytesMax = 3 * 1024 * 1024

/** Longer strings of a body stay unparsed. No name known to the gateway is this long, even if fully escaped. */
export const longTextBytesMin = 256

/**
 * The most bytes of one decoded long string, and of all of a body together. The longest text of a field has
 * `textCodePointsMax` code points, each written as two escapes of six bytes.
 */
export const textBytesMax = 12 * textCodePointsMax
export const textsBytesMax = 4 * 1024 * 1024
