import type { Glyph } from "./Unifont.ts"

/** Red, green and blue, 0 to 255. */
export type Color = readonly [red: number, green: number, blue: number]

/** A picture whose pixels are indices into a short palette. */
export interface Canvas {
  readonly width: number
  readonly height: number
  /** Row by row, one byte per pixel. */
  readonly pixels: Uint8Array
  readonly palette: ReadonlyArray<Color>
}

export const make = (width: number, height: number, palette: ReadonlyArray<Color>): Canvas => ({
  width,
  height,
  pixels: new Uint8Array(width * height),
  palette
})

/** Fills a rectangle, clipped to the canvas. */
export const fill = (
  canvas: Canvas,
  area: {
    readonly x: number
    readonly y: number
    readonly width: number
    readonly height: number
  },
  index: number
): void => {
  const left = Math.max(0, area.x)
  const right = Math.min(canvas.width, area.x + area.width)
  const bottom = Math.min(canvas.height, area.y + area.height)
  if (right <= left) return
  for (let y = Math.max(0, area.y); y < bottom; y += 1) {
    canvas.pixels.fill(index, y * canvas.width + left, y * canvas.width + right)
  }
}

/** Draws a glyph. Each of its dots is a square of `scale` pixels. */
export const drawGlyph = (
  canvas: Canvas,
  glyph: Glyph,
  at: { readonly x: number; readonly y: number; readonly scale: number },
  index: number
): void => {
  for (const [row, dots] of glyph.rows.entries()) {
    for (let column = 0; column < 16; column += 1) {
      if ((dots & (0x8000 >>> column)) === 0) continue
      fill(
        canvas,
        {
          x: at.x + column * at.scale,
          y: at.y + row * at.scale,
          width: at.scale,
          height: at.scale
        },
        index
      )
    }
  }
}

/** A color by hue (0 to 1), saturation and lightness (0 to 1). */
export const hsl = (hue: number, saturation: number, lightness: number): Color => {
  const reach = saturation * Math.min(lightness, 1 - lightness)
  const channel = (offset: number): number => {
    const position = (offset + hue * 12) % 12
    const level = lightness - reach * Math.max(-1, Math.min(position - 3, 9 - position, 1))
    return Math.round(level * 255)
  }
  return [channel(0), channel(8), channel(4)]
}
