/** The member of a JSON object or the element of an array at a path; `undefined` when there is none. */
export const at = (value: unknown, ...path: ReadonlyArray<string>): unknown => {
  let found = value
  for (const key of path) {
    if (typeof found !== "object" || found === null || !Object.hasOwn(found, key)) return undefined
    found = Reflect.get(found, key)
  }
  return found
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
 * Whether an object in a JSON text with this number of keys repeats a key. `JSON.parse` keeps one of them, so the
 * text has more keys than its value.
 */
export const hasDuplicateKeys = (keysWritten: number, value: unknown): boolean =>
  keysWritten !== keysParsed(value)
