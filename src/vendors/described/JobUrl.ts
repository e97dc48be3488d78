import { isSameOrigin } from "../BaseUrl.ts"

/** Neither empty nor a step to another folder: the vendor chose it, and the key goes to the URL. */
const isSegment = (text: string): boolean => text !== "" && text !== "." && text !== ".."

const segmentsOf = (name: string, value: string): ReadonlyArray<string> =>
  name === "model" ? value.split("/") : [value]

/** Whether a URL that a vendor named may be called at another origin than its own: without the key, see `makeSend`. */
const isCallable = (url: string): boolean => URL.parse(url)?.protocol === "https:"

/**
 * The URL of a path with the values of a handle in its braces, each as one segment (a model as several); or the URL
 * that the vendor named. `undefined` if a value is missing or may not be there.
 */
export const urlOf = (
  base: string,
  path: string,
  values: Readonly<Record<string, unknown>>
): string | undefined => {
  let isWhole = true
  const filled = path.replaceAll(/\{(\w+)\}/gu, (_, name: string) => {
    const value = values[name]
    const segments = typeof value === "string" ? segmentsOf(name, value) : []
    if (segments.length === 0 || !segments.every(isSegment)) isWhole = false
    return path.startsWith("{") ? segments.join("/") : segments.map(encodeURIComponent).join("/")
  })
  if (!isWhole) return undefined
  if (!path.startsWith("{")) return `${base}${filled}`
  return isSameOrigin(base, filled) || isCallable(filled) ? filled : undefined
}

/** With another parameter. */
export const withParameter = (url: string, name: string, value: string): string =>
  `${url}${url.includes("?") ? "&" : "?"}${new URLSearchParams({ [name]: value }).toString()}`
