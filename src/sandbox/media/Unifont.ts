import { Effect } from "effect"
import { readFile } from "node:fs/promises"
import { createRequire } from "node:module"
import * as Woff from "./Woff.ts"

/** A character on a grid of dots. */
export interface Glyph {
  /** The distance to the next character in dots: 8 for half width, 16 for full width. */
  readonly advance: number
  /** 16 rows from the top, or none for a blank. The highest of 16 bits is the leftmost dot. */
  readonly rows: ReadonlyArray<number>
}

export interface Font {
  /** Returns a box for a character that the font does not have. */
  readonly glyph: (codePoint: number) => Glyph
}

const require = createRequire(import.meta.url)

/** GNU Unifont's outlines are made of squares of 64 units, 14 above and 2 below the base line. */
const unitsPerDot = 64
const ascentDots = 14

/** An empty box of the given width, 12 rows high. */
const box = (advance: number): Glyph => {
  const edge = (0xffff << (17 - advance)) & 0x7fff
  const sides = 0x4000 | (1 << (17 - advance))
  return {
    advance,
    rows: Array.from({ length: 16 }, (_, row) => {
      if (row < 2 || row > 13) return 0
      return row === 2 || row === 13 ? edge : sides
    })
  }
}

const narrowBox = box(8)
const wideBox = box(16)

/** A font in which every character is a box. */
export const boxes: Font = {
  glyph: (codePoint) => (codePoint >= 0x2e80 ? wideBox : narrowBox)
}

interface Point {
  readonly x: number
  readonly y: number
}

/** Fills between vertical edges, row by row, by the even-odd rule. */
const fillOutline = (rows: Array<number>, contour: ReadonlyArray<Point>): void => {
  for (const [index, from] of contour.entries()) {
    const to = contour[(index + 1) % contour.length] ?? from
    const column = Math.round(from.x / unitsPerDot)
    const mask = column <= 0 ? 0xffff : 0xffff >>> column
    const top = ascentDots - Math.round(Math.max(from.y, to.y) / unitsPerDot)
    const bottom = ascentDots - Math.round(Math.min(from.y, to.y) / unitsPerDot)
    if (from.x !== to.x) continue
    for (let row = Math.max(0, top); row < Math.min(16, bottom); row += 1) {
      rows[row] = (rows[row] ?? 0) ^ mask
    }
  }
}

/** The flags of a simple TrueType outline, with repetitions expanded. */
const readFlags = (glyf: DataView, start: number, count: number) => {
  const flags: Array<number> = []
  let at = start
  while (flags.length < count) {
    const flag = glyf.getUint8(at)
    at += 1
    const repeats = (flag & 8) === 0 ? 0 : glyf.getUint8(at)
    if ((flag & 8) !== 0) at += 1
    for (let repeat = 0; repeat <= repeats; repeat += 1) flags.push(flag)
  }
  return { flags, next: at }
}

/** One axis of the points: `short` and `same` are the flag bits of that axis. */
const readAxis = (
  glyf: DataView,
  start: number,
  flags: ReadonlyArray<number>,
  short: number,
  same: number
) => {
  const values: Array<number> = []
  let at = start
  let value = 0
  for (const flag of flags) {
    if ((flag & short) !== 0) {
      value += (flag & same) === 0 ? -glyf.getUint8(at) : glyf.getUint8(at)
      at += 1
    } else if ((flag & same) === 0) {
      value += glyf.getInt16(at)
      at += 2
    }
    values.push(value)
  }
  return { values, next: at }
}

/** The dots of a simple TrueType outline. A compound outline has a negative count and gives an empty glyph. */
const readRows = (glyf: DataView, offset: number): ReadonlyArray<number> => {
  const rows = Array.from({ length: 16 }, () => 0)
  const contours = glyf.getInt16(offset)
  if (contours <= 0) return rows
  const ends = Array.from({ length: contours }, (_, index) =>
    glyf.getUint16(offset + 10 + index * 2)
  )
  const instructions = offset + 10 + contours * 2
  const count = (ends.at(-1) ?? -1) + 1
  const { flags, next } = readFlags(glyf, instructions + 2 + glyf.getUint16(instructions), count)
  const xs = readAxis(glyf, next, flags, 2, 16)
  const ys = readAxis(glyf, xs.next, flags, 4, 32)
  const points = xs.values.map((x, index): Point => ({ x, y: ys.values[index] ?? 0 }))
  let first = 0
  for (const end of ends) {
    fillOutline(rows, points.slice(first, end + 1))
    first = end + 1
  }
  return rows
}

/** Maps code points to glyph numbers by a `cmap` table of format 12 (groups of consecutive code points). */
const characterMap = (cmap: DataView): ((codePoint: number) => number) => {
  const groups: Array<{ readonly from: number; readonly to: number; readonly glyph: number }> = []
  for (let index = 0; index < cmap.getUint16(2); index += 1) {
    const start = cmap.getUint32(4 + index * 8 + 4)
    if (cmap.getUint16(start) !== 12 || groups.length > 0) continue
    for (let group = 0; group < cmap.getUint32(start + 12); group += 1) {
      const at = start + 16 + group * 12
      groups.push({
        from: cmap.getUint32(at),
        to: cmap.getUint32(at + 4),
        glyph: cmap.getUint32(at + 8)
      })
    }
  }
  return (codePoint) => {
    const group = groups.find(({ from, to }) => from <= codePoint && codePoint <= to)
    return group === undefined ? 0 : group.glyph + codePoint - group.from
  }
}

const read = Effect.fnUntraced(function* () {
  const woff = yield* Effect.tryPromise({
    try: () => readFile(require.resolve("@fontsource/unifont/files/unifont-latin-400-normal.woff")),
    catch: (cause) => new Woff.FontUnreadable({ message: String(cause) })
  })
  const [cmap, hmtx, loca, glyf] = yield* Effect.all([
    Woff.table(woff, "cmap"),
    Woff.table(woff, "hmtx"),
    Woff.table(woff, "loca"),
    Woff.table(woff, "glyf")
  ])
  const glyphOf = characterMap(cmap)
  const font: Font = {
    glyph: (codePoint) => {
      const index = glyphOf(codePoint)
      if (index === 0) return boxes.glyph(codePoint)
      const start = loca.getUint32(index * 4)
      const isBlank = start === loca.getUint32(index * 4 + 4)
      return {
        advance: Math.round(hmtx.getUint16(index * 4) / unitsPerDot),
        rows: isBlank ? [] : readRows(glyf, start)
      }
    }
  }
  return font
})

/**
 * GNU Unifont (SIL Open Font License) from the npm package `@fontsource/unifont`: every character of the
 * Basic Multilingual Plane, including Chinese, on a grid of 16 dots. Loading takes about 80 ms outside
 * the event loop, and 11 MB. When the file cannot be read, boxes are drawn and a warning is logged.
 */
export const load: Effect.Effect<Font> = read().pipe(
  Effect.catchTag("FontUnreadable", (error) =>
    Effect.logWarning(`simulator: characters are drawn as boxes, ${error.message}`).pipe(
      Effect.as(boxes)
    )
  )
)
