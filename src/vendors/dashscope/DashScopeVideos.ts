import { tierOfSize } from "../../catalog/bodies/Size.ts"
import { unlessOneOf } from "../BodyFields.ts"
import type { MediaAt } from "../MediaTexts.ts"
import { common, seconds, texts } from "./DashScopeFields.ts"
import type { Fields, Shape } from "./DashScopeFields.ts"

/** Video models whose bodies have tiers and media lists. docs/reference/vendors.md#dashscope-bodies */
export type VideoFamily = "wan2.7" | "wan3"

const families: ReadonlyArray<readonly [RegExp, VideoFamily]> = [
  [/^wan2\.7-/u, "wan2.7"],
  [/^wan3/u, "wan3"]
]

/** The family of an upstream model; `undefined` for wan2.6 and earlier. */
export const familyOf = (upstreamModel: string): VideoFamily | undefined =>
  families.find(([models]) => models.test(upstreamModel))?.[1]

/** The bodies of a later family by label; `undefined` for wan2.6 and earlier. */
export const shapesOf = (upstreamModel: string): Readonly<Record<string, Shape>> | undefined => {
  const family = familyOf(upstreamModel)
  return family === undefined ? undefined : shapes[family]
}

const path = "/video-generation/video-synthesis"

/** The ratio of each size. The vendor's 4:3 sizes are actually 17:13. */
const ratios: Readonly<Record<string, string>> = {
  "1280*720": "16:9",
  "720*1280": "9:16",
  "960*960": "1:1",
  "1088*832": "4:3",
  "832*1088": "3:4",
  "1920*1080": "16:9",
  "1080*1920": "9:16",
  "1440*1440": "1:1",
  "1632*1248": "4:3",
  "1248*1632": "3:4"
}

const tierAndRatio = ({ size }: Fields) =>
  size === undefined || size === null ? {} : { resolution: tierOfSize(size), ratio: ratios[size] }

const present = (medium: { readonly type: string; readonly url: string | undefined }) =>
  medium.url === undefined ? [] : [medium]

const firstFrame = (at: MediaAt) => present({ type: "first_frame", url: at("#/image") })

const frames = (at: MediaAt) => [
  ...firstFrame(at),
  ...present({ type: "last_frame", url: at("#/last_frame") })
]

const tier = (fields: Fields) => ({
  resolution: fields.resolution,
  ...seconds(fields),
  ...common(fields)
})

const shapes: Readonly<Record<VideoFamily, Readonly<Record<string, Shape>>>> = {
  // These videos always have sound, so there is no `audio`
  "wan2.7": {
    "text-to-video-spark": {
      path,
      input: (fields, at) => ({ ...texts(fields), audio_url: at("#/audio_url") }),
      parameters: (fields) => ({ ...tier(fields), ...tierAndRatio(fields) })
    },
    "image-to-video-spark": {
      path,
      input: (fields, at) => ({
        ...texts(fields),
        media: [...firstFrame(at), ...present({ type: "driving_audio", url: at("#/audio_url") })]
      }),
      parameters: tier
    },
    "keyframe-to-video-plus": {
      path,
      input: (fields, at) => ({ ...texts(fields), media: frames(at) }),
      parameters: tier
    }
  },
  // One id serves all modes, and the media determine the mode. There is no `negative_prompt`
  wan3: {
    "text-to-video-spark": {
      path,
      input: ({ prompt }) => ({ prompt }),
      parameters: (fields) => ({ ...tier(fields), ...tierAndRatio(fields), audio: fields.audio })
    },
    "image-to-video-spark": {
      path,
      input: ({ prompt }, at) => ({ prompt, media: firstFrame(at) }),
      parameters: (fields) => ({ ...tier(fields), audio: fields.audio })
    },
    "keyframe-to-video-plus": {
      path,
      input: ({ prompt }, at) => ({ prompt, media: frames(at) }),
      parameters: tier
    }
  }
}

const lacking: Readonly<Record<VideoFamily, ReadonlySet<string>>> = {
  "wan2.7": new Set(["template"]),
  wan3: new Set(["template", "negative_prompt", "audio_url"])
}

export const takesVideoField = (upstreamModel: string, field: string): boolean => {
  const family = familyOf(upstreamModel)
  return family === undefined || !lacking[family].has(field)
}

/** wan2.7 cannot be silent and has no 480P tier. */
export const videoValueFault = (
  upstreamModel: string,
  field: string,
  value: unknown
): string | undefined => {
  if (familyOf(upstreamModel) !== "wan2.7") return undefined
  if (field === "audio") return unlessOneOf([true], value)
  return field === "resolution" ? unlessOneOf(["720P", "1080P"], value) : undefined
}
