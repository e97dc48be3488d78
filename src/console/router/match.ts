/** The part of the path that matches `:name`, or `undefined` if the path does not match. */
export const matchPath = (
  pattern: string,
  path: string
): Readonly<Record<string, string>> | undefined => {
  const expected = pattern.split("/")
  const given = path.split("/")
  if (expected.length !== given.length) return undefined
  const params: Record<string, string> = {}
  for (const [index, part] of expected.entries()) {
    const text = given[index] ?? ""
    if (part.startsWith(":")) params[part.slice(1)] = decode(text)
    else if (part !== text) return undefined
  }
  return params
}

const decode = (text: string): string => {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}
