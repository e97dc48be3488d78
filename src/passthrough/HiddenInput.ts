import type { TokenModel } from "../catalog/OpenRoutes.ts"
import { at } from "../domain/json/Json.ts"
import { LongText } from "../domain/json/LongText.ts"
import { visitContent } from "./RequestContent.ts"

/** Input of a call that the length of its body does not show. */
export interface HiddenInput {
  readonly pictures: number
  /** Requests pictures at OpenAI's detail `original`. */
  readonly hasOriginals: boolean
  /** A document, audio, video or data stored at the vendor, which may contain any number of tokens. */
  readonly hasFile: boolean
  /** Requests a cache with a longer lifetime than the default, in Anthropic's or OpenAI's form. */
  readonly asksLongCache: boolean
  /** Requests that Anthropic compacts the context: it then reads the prompt and what it has made of it. */
  readonly compacts: boolean
}

const setOf = (...words: ReadonlyArray<string>): ReadonlySet<string> => new Set(words)

/** Names of members, and values of `type`. Gemini accepts two spellings of each name. */
const pictures = setOf("image_url", "input_image", "image", "inline_data", "inlineData")
const files = setOf(
  "file_data",
  "file_id",
  "file_uri",
  "fileUri",
  "cached_content",
  "cachedContent",
  // A URL at Mistral; OpenAI has an object with the sound itself
  "input_audio"
)
const fileTypes = setOf("document", "item_reference")
/** Files and media at a URL, in OpenAI's dialect: `{ url }` or the URL itself. */
const media = setOf("file_url", "document_url", "video_url", "audio_url")
const longCaches = setOf("1h", "12h", "24h")

/** Finds hidden input in a parsed body. */
export const hiddenInputOf = (body: unknown): HiddenInput => {
  let pictureCount = 0
  let lastPicture: object | undefined
  let hasOriginals = false
  let hasFile = hasStoredPrompt(body)
  let asksLongCache = false
  let compacts = false
  visitContent(body, (name, value, object) => {
    const isText = typeof value === "string"
    const isType = isText && name === "type"
    // The type and the URL of an image are members of one object, so it counts once
    if ((pictures.has(name) || (isType && pictures.has(value))) && object !== lastPicture) {
      pictureCount += 1
      lastPicture = object
    }
    hasFile ||= value !== null && media.has(name)
    // A file may be a `LongText`
    if (isText || value instanceof LongText) hasFile ||= files.has(name)
    if (!isText) return
    hasFile ||= isType && fileTypes.has(value)
    hasOriginals ||= name === "detail" && value === "original"
    asksLongCache ||= longCaches.has(value)
    compacts ||= isType && value.startsWith("compact_")
  })
  return { pictures: pictureCount, hasOriginals, hasFile, asksLongCache, compacts }
}

const pictureTokensMax = 6000
/** 10,000 patches, some of which count as 1.2 tokens. */
const originalTokensMax = 12_000
/** gpt-4o-mini counts 2,833 tokens, and 5,667 for each of up to eight tiles. */
const pictureTokensOfMini = 2833 + 8 * 5667

/** The most tokens of the pictures, whose cost does not show in the length of their URLs. */
export const pictureTokensOf = (
  { model }: TokenModel,
  { hasOriginals, pictures }: Pick<HiddenInput, "hasOriginals" | "pictures">
): number => {
  if (model === "gpt-4o-mini") return pictures * pictureTokensOfMini
  return pictures * (hasOriginals ? originalTokensMax : pictureTokensMax)
}

/** A prompt of OpenAI's dashboard: a member of the request itself. */
const hasStoredPrompt = (body: unknown): boolean => {
  const prompt = at(body, "prompt")
  return typeof prompt === "object" && prompt !== null
}
