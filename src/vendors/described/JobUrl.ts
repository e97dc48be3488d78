import { placeholder } from "../../catalog/jobs/JobProtocol.ts"
import { isSameOrigin } from "../BaseUrl.ts"

/** Rejects empty segments, `.` and `..`, because the vendor chose the value and the key is sent to the URL. */
const isSegment = (text: string): boolean => text !== "" && text !== "." && text !== ".."

/** The model has several segments, and so has a value with a number of segments. */
const segmentsOf = (name: string, value: string, count?: string): ReadonlyArray<string> =>
  name === "model" || count !== undefined
    ? value.split("/").slice(0, Number(count ?? Infinity))
    : [value]

/**
 * Whether a URL that the vendor named at another origin may be called. Such a call is sent without the key, see
 * `makeSend`.
 */
const isCallable = (url: string): boolean => URL.parse(url)?.protocol === "https:"

/**
 * The URL of a path whose placeholders are filled from a handle, each with one segment (a model with several, or with
 * its first two: `{model:2}`), or the URL that the vendor named. `undefined` if a value is missing or not allowed.
 */
export const urlOf = (
  base: string,
  path: string,
  values: Readonly<Record<string, unknown>>
): string | undefined => {
  if (path.startsWith("{")) {
    const named = values[path.slice(1, -1)]
    if (typeof named !== "string") return undefined
    return isSameOrigin(base, named) || isCallable(named) ? named : undefined
  }
  let isWhole = true
  const filled = path.replaceAll(placeholder, (_, name: string, count?: string) => {
    const value = values[name]
    const segments = typeof value === "string" ? segmentsOf(name, value, count) : []
    if (segments.length === 0 || !segments.every(isSegment)) isWhole = false
    return segments.map(encodeURIComponent).join("/")
  })
  return isWhole ? `${base}${filled}` : undefined
}

/** Adds a query parameter to a URL. */
export const withParameter = (url: string, name: string, value: string): string =>
  `${url}${url.includes("?") ? "&" : "?"}${new URLSearchParams({ [name]: value }).toString()}`
