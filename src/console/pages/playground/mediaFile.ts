import { showBytes } from "../../api/files.ts"
import type { Schemas } from "../../api/schema.ts"
import { playgroundTexts } from "../../texts/en/playground.ts"

export type Rules = Schemas["MediaField"]

const words = playgroundTexts.media

/** What a field accepts, on one line. */
export const limitsOf = (rules: Rules): string =>
  [
    words.types(rules.media_types.map((it) => it.replace(/^\w+\//u, "").toUpperCase()).join(", ")),
    words.upTo(showBytes(rules.max_bytes)),
    rules.min_side === null ? "" : words.sides(rules.min_side, rules.max_side),
    rules.min_seconds === null || rules.max_seconds === null
      ? ""
      : words.seconds(rules.min_seconds, rules.max_seconds),
    rules.inline ? "" : words.byUrl
  ]
    .filter(Boolean)
    .join(" · ")

/** Faults that can be found locally; the gateway checks the bytes. */
export const faultOf = async (file: File, rules: Rules): Promise<string | undefined> => {
  if (!rules.media_types.includes(file.type)) return words.wrongType(file.type)
  if (file.size > rules.max_bytes) return words.tooLarge(showBytes(file.size))
  const { max_side: most, min_side: least } = rules
  if (least === null) return undefined
  const picture = await createImageBitmap(file).catch(() => undefined)
  if (picture === undefined) return words.unreadable
  const { height, width } = picture
  picture.close()
  const fits = (side: number) => side >= least && (most === null || side <= most)
  return fits(width) && fits(height) ? undefined : words.wrongSides(width, height)
}
