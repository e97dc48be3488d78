/** Input of a call that the length of its body does not show. */
export interface HiddenInput {
  readonly pictures: number
  /** A document, sound or video, or what the vendor has stored: any number of tokens. */
  readonly hasFile: boolean
  /** A cache that lasts longer than the default, as Anthropic and OpenAI write it. */
  readonly asksLongCache: boolean
}

const picture = /"(?:image_url|input_image|image|inline_?[dD]ata)"/gu
const file =
  /"(?:file_data|file_?[uU]ri|file_url|file_id|cached_?[cC]ontent)"\s*:\s*"|"type"\s*:\s*"(?:document|item_reference)"|"prompt"\s*:\s*\{/u
const longCache = /"(?:1h|12h|24h)"/u

/** Finds it in the text of a JSON body, which has this value. */
export const hiddenInputOf = (text: string, value: unknown): HiddenInput => {
  const hidden = found(text)
  // JSON allows an escape for every letter: the upstream reads the same word
  if (!text.includes("\\u")) return hidden
  const plain = found(JSON.stringify(value))
  return {
    pictures: Math.max(hidden.pictures, plain.pictures),
    hasFile: hidden.hasFile || plain.hasFile,
    asksLongCache: hidden.asksLongCache || plain.asksLongCache
  }
}

const found = (text: string): HiddenInput => ({
  pictures: text.match(picture)?.length ?? 0,
  hasFile: file.test(text),
  asksLongCache: longCache.test(text)
})
