import { at } from "../domain/Json.ts"
import { visitContent } from "./RequestContent.ts"

/** Input of a call that the length of its body does not show. */
export interface HiddenInput {
  readonly pictures: number
  /** A document, sound or video, or what the vendor has stored: any number of tokens. */
  readonly hasFile: boolean
  /** A cache that lasts longer than the default, as Anthropic and OpenAI write it. */
  readonly asksLongCache: boolean
}

const picture = /^(?:image_url|input_image|image|inline_?[dD]ata)$/u
const file = /^(?:file_data|file_?[uU]ri|file_url|file_id|cached_?[cC]ontent)$/u
const fileTypes: ReadonlySet<unknown> = new Set(["document", "item_reference"])
const longCaches: ReadonlySet<unknown> = new Set(["1h", "12h", "24h"])

/** Finds it in a parsed body. */
export const hiddenInputOf = (body: unknown): HiddenInput => {
  let pictures = 0
  let hasFile = hasStoredPrompt(body)
  let asksLongCache = false
  visitContent(body, (object) => {
    let isPicture = false
    for (const [name, value] of Object.entries(object)) {
      isPicture ||= picture.test(name)
      if (typeof value !== "string") continue
      hasFile ||= file.test(name)
      asksLongCache ||= longCaches.has(value)
      if (name !== "type") continue
      isPicture ||= picture.test(value)
      hasFile ||= fileTypes.has(value)
    }
    if (isPicture) pictures += 1
  })
  return { pictures, hasFile, asksLongCache }
}

/** A prompt of OpenAI's dashboard: a member of the request itself. */
const hasStoredPrompt = (body: unknown): boolean => {
  const prompt = at(body, "prompt")
  return typeof prompt === "object" && prompt !== null
}
