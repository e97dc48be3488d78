import { Option, Schema } from "effect"
import type { AccountSetting } from "../../domain/Provider.ts"
import { unlessOneOf } from "../BodyFields.ts"

const sizes = {
  "720P": { wide: "1280x720", tall: "720x1280" },
  "1080P": { wide: "1792x1024", tall: "1024x1792" }
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

/** The fields of a body that are sent. */
export const videoFields: ReadonlySet<string> = new Set([
  "prompt",
  "duration",
  "size",
  "resolution",
  "image"
])

/**
 * OpenAI has shut down this API. Other bases that are compatible with it may still have it.
 * docs/reference/vendors.md#openai-videos
 */
export const hasVideos = ({ baseUrl }: AccountSetting): boolean =>
  new URL(baseUrl).hostname !== "api.openai.com"

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
