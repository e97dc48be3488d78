/** A range of bytes, with both ends included. */
interface ByteRange {
  readonly start: number
  readonly end: number
}

/** The part of a medium that a request selects. */
export type Selection =
  | { readonly _tag: "Whole" }
  | { readonly _tag: "Part"; readonly range: ByteRange }
  | { readonly _tag: "Unsatisfiable" }

const whole: Selection = { _tag: "Whole" }
const single = /^bytes=\s*(?:(\d{1,15})-(\d{0,15})|-(\d{1,15}))\s*$/iu

/**
 * Parses `Range` for a medium of `size` bytes (RFC 9110, section 14). Several ranges, another unit or a malformed
 * header select the whole medium, as the RFC allows.
 */
export const selectRange = (header: string | undefined, size: number): Selection => {
  const match = single.exec(header ?? "")
  if (match === null) return whole
  const [, first, last = "", suffix] = match
  if (first === undefined) {
    const length = Math.min(Number(suffix), size)
    return length === 0
      ? { _tag: "Unsatisfiable" }
      : { _tag: "Part", range: { start: size - length, end: size - 1 } }
  }
  const start = Number(first)
  if (last !== "" && Number(last) < start) return whole
  return start >= size
    ? { _tag: "Unsatisfiable" }
    : {
        _tag: "Part",
        range: { start, end: last === "" ? size - 1 : Math.min(Number(last), size - 1) }
      }
}

/** Whether `If-None-Match` matches the entity tag, by weak comparison (RFC 9110, section 13.1.2). */
export const matches = (header: string | undefined, tag: string): boolean =>
  header !== undefined &&
  header
    .split(",")
    .map((it) => it.trim().replace(/^W\//u, ""))
    .some((it) => it === "*" || it === tag)
