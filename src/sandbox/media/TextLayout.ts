import type { Font, Glyph } from "./Unifont.ts"

interface PlacedGlyph {
  readonly glyph: Glyph
  /** Dots from the left edge of the text box. */
  readonly x: number
  readonly line: number
}

export interface TextLayout {
  readonly glyphs: ReadonlyArray<PlacedGlyph>
  readonly lines: number
}

/** A line break, blanks, a word, or one ideograph. Lines can break before and after each. */
const tokens = /\n|[^\S\n]+|[^\s\u2e80-\u{10ffff}]+|./gsu

/** Breaks a text into lines of at most `width` dots, between words where possible. */
export const wrap = (text: string, font: Font, width: number): TextLayout => {
  const glyphs: Array<PlacedGlyph> = []
  let line = 0
  let x = 0
  const breakLine = () => {
    line += 1
    x = 0
  }
  for (const [token] of text.replaceAll(/[^\P{Cc}\n\t]/gu, "").matchAll(tokens)) {
    if (token === "\n") {
      breakLine()
      continue
    }
    const isBlank = token.trim() === ""
    const word = isBlank ? [font.glyph(32)] : Array.from(token, (it) => font.glyph(codeOf(it)))
    const total = word.reduce((sum, glyph) => sum + glyph.advance, 0)
    if (x > 0 && x + total > width) breakLine()
    if (isBlank && x === 0) continue
    for (const glyph of word) {
      if (x > 0 && x + glyph.advance > width) breakLine()
      glyphs.push({ glyph, x, line })
      x += glyph.advance
    }
  }
  return { glyphs, lines: glyphs.length === 0 ? 0 : line + 1 }
}

const codeOf = (character: string): number => character.codePointAt(0) ?? 32
