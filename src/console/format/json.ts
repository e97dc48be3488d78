/** The value of a JSON text; `undefined` if it is none. */
export const parseJson = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** JSON with line breaks; any other text, such as events, unchanged. */
export const indented = (text: string): string => {
  const value = parseJson(text)
  return value === undefined ? text : JSON.stringify(value, null, 2)
}
