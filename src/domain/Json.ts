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

/** Strings with a colon behind them. */
const keysWritten = (text: string): number => {
  let keys = 0
  for (let open = text.indexOf(quote); open >= 0;) {
    const end = endOfString(text, open)
    let next = end + 1
    while (text.charCodeAt(next) <= space) next += 1
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
