/**
 * The statements of an SQL file. sql-pg takes one statement per call, so a file is split at each `;` outside quotes,
 * dollar quotes, comments and parentheses. Statements with only comments are omitted. Bodies in `BEGIN ATOMIC` are not
 * supported: write `$$`.
 */
export const splitStatements = (text: string): ReadonlyArray<string> => {
  const statements: Array<string> = []
  let start = 0
  let offset = 0
  let depth = 0
  let blank = true
  const end = () => {
    if (!blank) statements.push(text.slice(start, offset).trim())
    blank = true
  }
  while (offset < text.length) {
    const comment = skipComment(text, offset)
    if (comment > offset) {
      offset = comment
      continue
    }
    const character = text[offset] ?? ""
    if (character === ";" && depth === 0) {
      end()
      offset += 1
      start = offset
      continue
    }
    if (character === "(") depth += 1
    if (character === ")") depth = Math.max(0, depth - 1)
    if (!isSpace(character)) blank = false
    offset = skipToken(text, offset)
  }
  end()
  return statements
}

const isSpace = (character: string): boolean => /\s/.test(character)

/** The offset after a `--` or a (nested) block comment at `offset`; `offset` itself if there is none. */
const skipComment = (text: string, offset: number): number => {
  if (text.startsWith("--", offset)) {
    const line = text.indexOf("\n", offset)
    return line < 0 ? text.length : line + 1
  }
  if (!text.startsWith("/*", offset)) return offset
  let depth = 0
  let at = offset
  while (at < text.length) {
    if (text.startsWith("/*", at)) {
      depth += 1
      at += 2
    } else if (text.startsWith("*/", at)) {
      depth -= 1
      at += 2
      if (depth === 0) return at
    } else {
      at += 1
    }
  }
  return at
}

const word = /[\p{L}_][\p{L}\p{N}_$]*/uy
const dollarTag = /\$(?:[\p{L}_][\p{L}\p{N}_]*)?\$/uy

const matchAt = (pattern: RegExp, text: string, offset: number): string | undefined => {
  pattern.lastIndex = offset
  return pattern.exec(text)?.[0]
}

/** The offset after the word, the quoted text or the single character at `offset`. */
const skipToken = (text: string, offset: number): number => {
  const character = text[offset]
  if (character === "'") return skipQuoted(text, offset, "'", false)
  if (character === '"') return skipQuoted(text, offset, '"', false)
  const tag = character === "$" ? matchAt(dollarTag, text, offset) : undefined
  if (tag !== undefined) {
    const close = text.indexOf(tag, offset + tag.length)
    return close < 0 ? text.length : close + tag.length
  }
  const name = matchAt(word, text, offset)
  if (name === undefined) return offset + 1
  const next = offset + name.length
  // `E'…'` allows backslash escapes
  return /^e$/i.test(name) && text[next] === "'" ? skipQuoted(text, next, "'", true) : next
}

/** A doubled quote needs no special treatment: it ends one quoted text and begins another. */
const skipQuoted = (text: string, offset: number, quote: string, escapes: boolean): number => {
  let at = offset + 1
  while (at < text.length && text[at] !== quote) {
    at += escapes && text[at] === "\\" ? 2 : 1
  }
  return Math.min(at + 1, text.length)
}
