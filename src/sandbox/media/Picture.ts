import type { Canvas, Color } from "./Canvas.ts"

/** One plane of a picture, row by row. */
export interface Plane {
  readonly stride: number
  readonly samples: Uint8Array
}

/** A picture in the format of H.264: whole macroblocks of 16×16, chroma at half the resolution. */
export interface Picture {
  readonly columns: number
  readonly rows: number
  readonly luma: Plane
  readonly blue: Plane
  readonly red: Plane
}

/** BT.709, limited range: luma 16 to 235, color 16 to 240. */
export const ycc = ([red, green, blue]: Color): readonly [number, number, number] => {
  const luma = (0.2126 * red + 0.7152 * green + 0.0722 * blue) / 255
  return [
    Math.round(16 + 219 * luma),
    Math.round(128 + (224 * (blue / 255 - luma)) / 1.8556),
    Math.round(128 + (224 * (red / 255 - luma)) / 1.5748)
  ]
}

/** Repeats the last pixel beyond the right and lower edge, which the decoder crops. */
const lumaPlane = (canvas: Canvas, levels: Uint8Array, columns: number, rows: number): Plane => {
  const stride = columns * 16
  const samples = new Uint8Array(stride * rows * 16)
  for (let y = 0; y < rows * 16; y += 1) {
    const from = Math.min(y, canvas.height - 1) * canvas.width
    for (let x = 0; x < stride; x += 1) {
      const index = canvas.pixels[from + Math.min(x, canvas.width - 1)] ?? 0
      samples[y * stride + x] = levels[index] ?? 0
    }
  }
  return { stride, samples }
}

const chromaPlane = (canvas: Canvas, levels: Uint8Array, columns: number, rows: number): Plane => {
  const stride = columns * 8
  const samples = new Uint8Array(stride * rows * 8)
  for (let y = 0; y < rows * 8; y += 1) {
    const upper = Math.min(y * 2, canvas.height - 1) * canvas.width
    const lower = Math.min(y * 2 + 1, canvas.height - 1) * canvas.width
    for (let x = 0; x < stride; x += 1) {
      const left = Math.min(x * 2, canvas.width - 1)
      const right = Math.min(x * 2 + 1, canvas.width - 1)
      const at = (place: number): number => levels[canvas.pixels[place] ?? 0] ?? 0
      const sum = at(upper + left) + at(upper + right) + at(lower + left) + at(lower + right)
      samples[y * stride + x] = (sum + 2) >> 2
    }
  }
  return { stride, samples }
}

export const fromCanvas = (canvas: Canvas): Picture => {
  const columns = Math.ceil(canvas.width / 16)
  const rows = Math.ceil(canvas.height / 16)
  const colors = canvas.palette.map(ycc)
  return {
    columns,
    rows,
    luma: lumaPlane(
      canvas,
      Uint8Array.from(colors, ([it]) => it),
      columns,
      rows
    ),
    blue: chromaPlane(
      canvas,
      Uint8Array.from(colors, ([, it]) => it),
      columns,
      rows
    ),
    red: chromaPlane(
      canvas,
      Uint8Array.from(colors, ([, , it]) => it),
      columns,
      rows
    )
  }
}

/** The samples of one macroblock, `size`×`size`. */
export const blockSamples = (
  plane: Plane,
  column: number,
  row: number,
  size: number
): Uint8Array => {
  const samples = new Uint8Array(size * size)
  for (let y = 0; y < size; y += 1) {
    const from = (row * size + y) * plane.stride + column * size
    samples.set(plane.samples.subarray(from, from + size), y * size)
  }
  return samples
}

/** Whether every row of the block repeats the sample to its left. */
export const repeatsLeft = (plane: Plane, column: number, row: number, size: number): boolean => {
  if (column === 0) return false
  for (let y = 0; y < size; y += 1) {
    const from = (row * size + y) * plane.stride + column * size
    for (let x = 0; x < size; x += 1) {
      if (plane.samples[from + x] !== plane.samples[from - 1]) return false
    }
  }
  return true
}

/** Whether every column of the block repeats the sample above it. */
export const repeatsAbove = (plane: Plane, column: number, row: number, size: number): boolean => {
  if (row === 0) return false
  for (let y = 0; y < size; y += 1) {
    const from = (row * size + y) * plane.stride + column * size
    for (let x = 0; x < size; x += 1) {
      if (plane.samples[from + x] !== plane.samples[from + x - (y + 1) * plane.stride]) return false
    }
  }
  return true
}
