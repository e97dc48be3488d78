/** The value at a path of names and indexes in a JSON value. */
export const at = (value: unknown, ...path: ReadonlyArray<string | number>): unknown =>
  path.reduce<unknown>(
    (found, name) =>
      typeof found === "object" && found !== null ? Reflect.get(found, name) : undefined,
    value
  )

export const listAt = (value: unknown, ...path: ReadonlyArray<string | number>) => {
  const found = at(value, ...path)
  return Array.isArray(found) ? (found as ReadonlyArray<unknown>) : []
}

/** The words of a response, its JSON if a format is requested, and the arguments of a tool call. */
export const words = ["Hel", "lo", " there"]
export const text = words.join("")
export const formed = { city: "Lisbon", days: 3 }

/** Arguments for all parameters of the tool. */
export const argumentsFor = (tool: unknown): object =>
  JSON.stringify(tool ?? {}).includes('"days"') ? formed : { city: formed.city }
