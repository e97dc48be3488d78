import { unlessOneOf } from "../BodyFields.ts"

/** The width and height in `W*H`. The body's schema has checked the text. */
const sidesOf = (size: string): readonly [number, number] => {
  const [width = 0, height = 0] = size.split("*").map(Number)
  return [width, height]
}

/** Whether an OpenAI model supports only three sizes. Other models, including those of other vendors, get any size. */
const isClassic = (upstreamModel: string): boolean =>
  /^(?:gpt-image-1|chatgpt-image)/u.test(upstreamModel)

const isFree = (upstreamModel: string): boolean => upstreamModel.startsWith("gpt-image-2")

/** The values that these models accept, by body field. */
const classic: Readonly<Record<string, ReadonlyArray<string>>> = {
  size: ["1024*1024", "1536*1024", "1024*1536"],
  aspect_ratio: ["1:1", "3:2", "2:3"],
  resolution: ["1K"]
}

const side = 16
const edgeMax = 3840
const pixelsMax = 3840 * 2160
const ratioMax = 3

const freeFault = (size: string): string | undefined => {
  const [width, height] = sidesOf(size)
  if (width % side !== 0 || height % side !== 0) {
    return `This model takes a width and a height divisible by ${side}, got ${size}`
  }
  const [long, short] = [Math.max(width, height), Math.min(width, height)]
  if (long > ratioMax * short) return `This model takes a ratio of 1:3 to 3:1, got ${size}`
  return long > edgeMax || width * height > pixelsMax
    ? `This model takes at most 3840*2160 pixels, got ${size}`
    : undefined
}

/** Why the model would refuse this size or ratio. docs/reference/vendors.md#openai-images */
export const sizeFault = (
  upstreamModel: string,
  field: string,
  value: unknown
): string | undefined => {
  if (isClassic(upstreamModel)) {
    const values = classic[field]
    return values === undefined ? undefined : unlessOneOf(values, value)
  }
  return field === "size" && typeof value === "string" && isFree(upstreamModel)
    ? freeFault(value)
    : undefined
}

/** The supported size for the orientation. Used for a default that is not one of the three sizes. */
const classicSize = (width: number, height: number): string => {
  if (width === height) return "1024x1024"
  return width > height ? "1536x1024" : "1024x1536"
}

const tiers: Readonly<Record<string, number>> = { "1K": 1024, "2K": 2048 }

/** A size with this ratio, sides divisible by 16, and about as many pixels as a square of the tier. */
const sizeOfRatio = (ratio: string, resolution = "1K"): string => {
  const [wide = 1, high = 1] = ratio.split(":").map(Number)
  const units = (tiers[resolution] ?? 1024) / side / Math.sqrt(wide * high)
  return [wide, high].map((part) => side * part * Math.round(units)).join("x")
}

interface AskedSize {
  readonly size?: string | null
  readonly aspect_ratio?: string
  readonly resolution?: string
}

/** The `size` to send; `undefined` leaves it to the model. */
export const sizeOf = (
  upstreamModel: string,
  { aspect_ratio: ratio, resolution, size }: AskedSize
): string | undefined => {
  const isThree = isClassic(upstreamModel)
  if (size !== undefined && size !== null) {
    return isThree ? classicSize(...sidesOf(size)) : sidesOf(size).join("x")
  }
  if (ratio === undefined) return undefined
  return isThree ? classicSize(...sidesOf(ratio.replace(":", "*"))) : sizeOfRatio(ratio, resolution)
}
