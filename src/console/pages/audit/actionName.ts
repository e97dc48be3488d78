/** `listApiKeys` is a read. */
export const isRead = (type: string): boolean =>
  /^(?:list|get|read|export|view)(?=[A-Z])/u.test(type)

const names: Readonly<Record<string, string>> = { api: "API", csv: "CSV" }

/** `createApiKey` becomes “Create API key”. */
export const actionName = (type: string): string => {
  const words = type
    .replaceAll(/([a-z])([A-Z])/gu, "$1 $2")
    .toLowerCase()
    .split(/[\s._]+/u)
    .map((word) => names[word] ?? word)
    .join(" ")
  return words.charAt(0).toUpperCase() + words.slice(1)
}
