import { Option, Schema } from "effect"
import { unlessOneOf } from "../BodyFields.ts"
import { orientationOf } from "./OpenAiCalls.ts"

const sizes = {
  "720P": { wide: "1280x720", tall: "720x1280", square: "1280x720" },
  "1080P": { wide: "1792x1024", tall: "1024x1792", square: "1792x1024" }
} as const

const Sized = Schema.Struct({
  size: Schema.optionalKey(Schema.NullOr(Schema.String)),
  resolution: Schema.optionalKey(Schema.String)
})
type Sized = typeof Sized.Type
const decodeSized = Schema.decodeUnknownOption(Sized)

export interface Pixels {
  readonly width: number
  readonly height: number
}

const tierOf = ({ resolution, size }: Sized) => {
  const pixels = (size ?? "1280*720").split("*").reduce((product, it) => product * Number(it), 1)
  return sizes[resolution === "1080P" || pixels > 1_200_000 ? "1080P" : "720P"]
}

/** The size of the video: that of the input image if there is one, else by tier and orientation. */
export const sizeOf = (body: Sized, picture: Pixels | undefined): string =>
  tierOf(body)[
    orientationOf(
      picture === undefined ? (body.size ?? "1280*720") : `${picture.width}*${picture.height}`
    )
  ]

/**
 * Why the vendor would refuse the input image: it must have exactly the size of the video.
 * docs/reference/vendors.md#openai-videos
 */
export const pictureFault = (body: unknown, { height, width }: Pixels): string | undefined => {
  const { tall, wide } = tierOf(Option.getOrElse(decodeSized(body), () => ({})))
  const expected = [wide, tall].map((it) => it.replace("x", "*"))
  const actual = `${width}*${height}`
  return expected.includes(actual)
    ? undefined
    : `Expected a picture of exactly ${expected.join(" or ")} pixels, the size of the video, got ${actual}`
}

/** Why the vendor would refuse this size or tier. */
export const videoSizeFault = (
  _model: string,
  field: string,
  value: unknown
): string | undefined => {
  if (field === "size") return unlessOneOf(["1280*720", "720*1280"], value)
  return field === "resolution" ? unlessOneOf(Object.keys(sizes), value) : undefined
}
