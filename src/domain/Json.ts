/** The member of a JSON object or the element of an array at a path; `undefined` when there is none. */
export const at = (value: unknown, ...path: ReadonlyArray<string>): unknown => {
  let found = value
  for (const key of path) {
    if (typeof found !== "object" || found === null || !Object.hasOwn(found, key)) return undefined
    found = Reflect.get(found, key)
  }
  return found
}

const quote = '"'
const backslash = 92
const colon = 58
const space = 32

/** The index of the quote that ends the string at `open`, in valid JSON. */
const endOfString = (text: string, open: number): number => {
  for (let end = text.indexOf(quote, open + 1); ; end = text.indexOf(quote, end + 1)) {
    let before = end - 1
    while (text.charCodeAt(before) === backslash) before -= 1
    if ((end - before) % 2 === 1) return end
  }
}

/** The index of what follows the string that ends there. */
const afterString = (text: string, end: number): number => {
  let next = end + 1
  while (text.charCodeAt(next) <= space) next += 1
  return next
}

/** Strings with a colon behind them. */
const keysWritten = (text: string): number => {
  let keys = 0
  for (let open = text.indexOf(quote); open >= 0;) {
    const next = afterString(text, endOfString(text, open))
    if (text.charCodeAt(next) === colon) keys += 1
    open = text.indexOf(quote, next)
  }
  return keys
}

const isParent = (value: unknown): value is object => typeof value === "object" && value !== null

const keysParsed = (value: unknown): number => {
  let keys = 0
  const parents = [value].filter(isParent)
  for (let parent = parents.pop(); parent !== undefined; parent = parents.pop()) {
    const members: ReadonlyArray<unknown> = Array.isArray(parent) ? parent : Object.values(parent)
    if (members !== parent) keys += members.length
    for (const member of members) if (isParent(member)) parents.push(member)
  }
  return keys
}

/**
 * Whether an object of a JSON text has a key twice. Of such keys `JSON.parse` keeps one, so the text has
 * more keys than its value. Costs a fraction of the parse, for texts full of quotes as much as it.
 */
export const hasDuplicateKeys = (text: string, value: unknown): boolean =>
  keysWritten(text) !== keysParsed(value)

/**
 * The text of a JSON object with another value of one of its members, which is a string and stands there once. All
 * else is as it was: a parser would round large numbers.
 */
export const withString = (text: string, key: string, value: string): string => {
  let depth = 0
  for (let open = 0; open < text.length; open += 1) {
    const mark = text[open]
    if (mark === "{" || mark === "[") depth += 1
    else if (mark === "}" || mark === "]") depth -= 1
    else if (mark === quote) {
      const end = endOfString(text, open)
      const next = afterString(text, end)
      if (depth === 1 && text.charCodeAt(next) === colon) {
        const name: unknown = JSON.parse(text.slice(open, end + 1))
        const from = text.indexOf(quote, next)
        if (name === key) {
          return `${text.slice(0, from)}${JSON.stringify(value)}${text.slice(endOfString(text, from) + 1)}`
        }
      }
      open = end
    }
  }
  return text
}
