/** The headers of a request, from Node or from Effect. */
export type HeaderValues = Readonly<Record<string, string | ReadonlyArray<string> | undefined>>

/** A header by its lower-case name. Several values are joined as in HTTP. */
export const headerText = (headers: HeaderValues, name: string): string | undefined => {
  const value = headers[name]
  return value === undefined || typeof value === "string" ? value : value.join(", ")
}
