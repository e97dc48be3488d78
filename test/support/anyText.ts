import * as fc from "fast-check"

const codePoint = fc.integer({ min: 0, max: 0x10ffff }).map(
  (code) => String.fromCodePoint(code),
  (text) => {
    const code = typeof text === "string" ? text.codePointAt(0) : undefined
    if (code === undefined || String.fromCodePoint(code) !== text) throw new Error("no code point")
    return code
  }
)

/** Any text, even with single surrogates. The unit "binary" of fast-check first lists all characters for a second. */
export const anyText = fc.string({ unit: codePoint })
