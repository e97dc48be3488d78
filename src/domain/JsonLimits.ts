import { textCodePointsMax } from "./Limits.ts"

/**
 * Bounds of what a parser does with a JSON body in one turn of the event loop, some 20 ms at most: points of
 * structure, levels, and bytes outside of long strings, which are not parsed. docs/reference/http.md#complex-json
 */
export const jsonWeightMax = 400_000
export const jsonDepthMax = 128
export const jsonOutlineBytesMax = 3 * 1024 * 1024

/** A longer string of a body stays apart. No name that the gateway knows is as long, even all in escapes. */
export const longTextBytesMin = 256

/**
 * Bytes of a long string that is decoded, and of all such of a body. The longest text that a field takes has
 * `textCodePointsMax`, each as two escapes of six bytes.
 */
export const textBytesMax = 12 * textCodePointsMax
export const textsBytesMax = 4 * 1024 * 1024
