/** Headers as Node has them, and as Effect has them. */
export type HeaderValues = Readonly<Record<string, string | ReadonlyArray<string> | undefined>>

/** The text of a header, by its name in small letters; several are joined as HTTP does it. */
export const headerText = (headers: HeaderValues, name: string): string | undefined => {
  const value = headers[name]
  return value === undefined || typeof value === "string" ? value : value.join(", ")
}
