/** Headers of Node and headers of Effect. */
export type HeaderValues = Readonly<Record<string, string | ReadonlyArray<string> | undefined>>

/** A header by its lower-case name; several values are joined as in HTTP. */
export const headerText = (headers: HeaderValues, name: string): string | undefined => {
  const value = headers[name]
  return value === undefined || typeof value === "string" ? value : value.join(", ")
}
