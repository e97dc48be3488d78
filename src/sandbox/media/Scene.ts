import { hash, randomFrom } from "../Seed.ts"
import * as Canvas from "./Canvas.ts"
import { wrap } from "./TextLayout.ts"
import type { Font, Glyph } from "./Unifont.ts"

/** Everything that determines a picture. Equal scenes give equal bytes. */
export interface Scene {
  readonly width: number
  readonly height: number
  readonly prompt: string
  /** The label of the model, shown in the last line. */
  readonly model: string
  readonly seed: number
  /** Index of the result in the task, from 0. */
  readonly index: number
  /** Number of results of the task. */
  readonly count: number
}

/** Edges are aligned with H.264's macroblocks where possible, which makes videos smaller. */
const block = 16

const bands = 12
const cellsPerSide = 5

/** Palette indices after the bands of the background. */
const textColor = bands
const captionColor = bands + 1
const figureColor = bands + 2
/** The color of the progress bar. */
export const accentColor = bands + 3

const glyphDots = 16
const lineDots = 18

const onBlocks = (pixels: number): number => Math.max(1, Math.round(pixels / block)) * block

/** A gradient of dark colors, light text, and a figure color between the two. */
const paletteOf = (random: () => number): ReadonlyArray<Canvas.Color> => {
  const hue = random()
  const hueShift = (random() - 0.5) * 0.4
  const background = Array.from({ length: bands }, (_, band) => {
    const share = band / (bands - 1)
    return Canvas.hsl((hue + hueShift * share + 1) % 1, 0.5, 0.28 - 0.14 * share)
  })
  return [
    ...background,
    Canvas.hsl(hue, 0.2, 0.97),
    Canvas.hsl(hue, 0.3, 0.8),
    Canvas.hsl((hue + 0.5) % 1, 0.45, 0.4),
    Canvas.hsl((hue + 0.5) % 1, 0.75, 0.62)
  ]
}

const paintBackground = (canvas: Canvas.Canvas): void => {
  const rows = Math.ceil(canvas.height / block)
  for (let row = 0; row < rows; row += 1) {
    const band = Math.min(bands - 1, Math.floor((row * bands) / rows))
    Canvas.fill(canvas, { x: 0, y: row * block, width: canvas.width, height: block }, band)
  }
}

/** Paints a mirrored figure in the lower right corner, different for each seed and prompt. */
const paintFigure = (canvas: Canvas.Canvas, random: () => number): void => {
  const cell = onBlocks(Math.min(canvas.width, canvas.height) / 20)
  const side = cell * cellsPerSide
  const left = Math.floor((canvas.width - side - 2 * block) / block) * block
  const top = Math.floor((canvas.height - side - 3 * block) / block) * block
  for (let row = 0; row < cellsPerSide; row += 1) {
    for (let column = 0; column < Math.ceil(cellsPerSide / 2); column += 1) {
      if (random() < 0.5) continue
      const y = top + row * cell
      for (const place of [column, cellsPerSide - 1 - column]) {
        const x = left + place * cell
        Canvas.fill(canvas, { x, y, width: cell, height: cell }, figureColor)
      }
    }
  }
}

const paintText = (
  canvas: Canvas.Canvas,
  text: string,
  font: Font,
  box: {
    readonly x: number
    readonly y: number
    readonly width: number
    readonly height: number
    readonly scaleMax: number
    readonly color: number
  }
): void => {
  for (let scale = box.scaleMax; scale >= 1; scale -= 1) {
    const layout = wrap(text, font, Math.floor(box.width / scale))
    if (scale > 1 && layout.lines * lineDots * scale > box.height) continue
    for (const { glyph, x, line } of layout.glyphs) {
      const y = line * lineDots * scale
      if (y + glyphDots * scale > box.height) break
      Canvas.drawGlyph(canvas, glyph, { x: box.x + x * scale, y: box.y + y, scale }, box.color)
    }
    return
  }
}

/** Caches glyphs, because a text is laid out at several sizes. */
const memoized = (font: Font): Font => {
  const known = new Map<number, Glyph>()
  return {
    glyph: (codePoint) => {
      const glyph = known.get(codePoint) ?? font.glyph(codePoint)
      known.set(codePoint, glyph)
      return glyph
    }
  }
}

const caption = (scene: Scene): string =>
  `${scene.model} ${scene.width}x${scene.height} seed ${scene.seed} ` +
  `${scene.index + 1}/${scene.count} simulated`

/**
 * Draws the prompt as large as it fits, a background and a figure derived from seed and prompt, and a last line with
 * model, size, seed and number. Clips text that does not fit at the smallest size.
 */
export const paint = (scene: Scene, fullFont: Font): Canvas.Canvas => {
  const font = memoized(fullFont)
  const random = randomFrom(hash(`${scene.seed}:${scene.index}:${scene.model}:${scene.prompt}`))
  const canvas = Canvas.make(scene.width, scene.height, paletteOf(random))
  paintBackground(canvas)
  paintFigure(canvas, random)
  const shorter = Math.min(scene.width, scene.height)
  const scaleMax = Math.max(1, Math.floor(shorter / 300))
  const margin = shorter >= 256 ? onBlocks(shorter / 20) : Math.floor(shorter / 16)
  const captionScale = scaleMax > 1 && scene.width >= 1000 ? 2 : 1
  const captionHeight = glyphDots * captionScale
  const captionTop = scene.height - margin - captionHeight
  const width = scene.width - 2 * margin
  paintText(canvas, scene.prompt, font, {
    x: margin,
    y: margin,
    width,
    height: captionTop - margin - block,
    scaleMax,
    color: textColor
  })
  paintText(canvas, caption(scene), font, {
    x: margin,
    y: captionTop,
    width,
    height: captionHeight,
    scaleMax: captionScale,
    color: captionColor
  })
  return canvas
}
