/** What a body asks to be read or kept that its length does not show. */
export interface HiddenInput {
  readonly pictures: number
  /** A document, sound or film: any number of tokens. */
  readonly hasFile: boolean
  /** A cache that is to last longer than it does unasked: in the words of Anthropic, and of OpenAI. */
  readonly asksLongCache: boolean
}

const picture = /"(?:image_url|input_image|image|inline_?[dD]ata)"/gu
const file = /"(?:file_data|file_?[uU]ri|file_url|file_id)"\s*:\s*"|"type"\s*:\s*"document"/u
const longCache = /"(?:1h|12h|24h)"/u

/** Letters of the words above that are written as escapes; quotes and backslashes stay what they are. */
const escaped = /\\u00(?!22|5[cC])([2-7][0-9a-fA-F])/gu
const unescaped = (_: string, code: string): string =>
  String.fromCharCode(Number.parseInt(code, 16))

/** Of the text of a JSON body. */
export const hiddenInputOf = (text: string): HiddenInput => {
  const hidden = found(text)
  // JSON lets every letter be written as an escape: the upstream reads the same word
  if (!text.includes("\\u")) return hidden
  const plain = found(text.replaceAll(escaped, unescaped))
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
