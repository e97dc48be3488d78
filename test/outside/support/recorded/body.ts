/** What stands at a path of names and indexes in a JSON value. */
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

/** Words of an answer, its JSON where a form is asked for, and the arguments of a tool's call. */
export const words = ["Hel", "lo", " there"]
export const text = words.join("")
export const formed = { city: "Lisbon", days: 3 }

/** The arguments of a tool's call: all that the tool takes. */
export const argumentsFor = (tool: unknown): object =>
  JSON.stringify(tool ?? {}).includes('"days"') ? formed : { city: formed.city }
