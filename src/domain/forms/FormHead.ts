import { Buffer } from "node:buffer"
import { formHeaderBytesMax } from "../limits/ShapeLimits.ts"

export const lineEnd = "\r\n"
const headersEnd = Buffer.from("\r\n\r\n")

/** The boundary parameter of `multipart/form-data`. RFC 2046, section 5.1.1 */
const boundaryIn = /;\s*boundary=(?:"([^"]{1,70})"|([^\s;"]{1,70}))/iu

/** The boundary in a content type. */
export const boundaryOf = (contentType: string): string | undefined => {
  const match = boundaryIn.exec(contentType)
  return match?.[1] ?? match?.[2]
}

export const headEndBytes = headersEnd.length

export const notAForm = "The body is not a valid form"

/** The parsed headers of a part. */
interface PartHead {
  readonly name: string
  /** Only file parts have one. */
  readonly filename: string | undefined
}

/** The index after the headers of a part; `undefined` if their end has not arrived or does not exist. */
export const endOfHead = (bytes: Buffer): number | undefined => {
  const end = bytes.subarray(0, formHeaderBytesMax).indexOf(headersEnd)
  return end < 0 ? undefined : end
}

/** Parses the headers of a part, from the text between a delimiter and the end of the headers. */
export const readHead = (text: string): PartHead | undefined => {
  const [first = "", ...lines] = text.split(lineEnd)
  if (first.trim() !== "") return undefined
  const line = lines.find((it) => /^content-disposition\s*:\s*form-data\b/iu.test(it))
  const name = line && parameterOf(line, "name")
  if (line === undefined || name === undefined) return undefined
  return { name, filename: parameterOf(line, "filename\\*?") }
}

/** A quoted parameter, as browsers and clients escape it (WHATWG, multipart/form-data), or a bare one. */
const parameterOf = (line: string, name: string): string | undefined => {
  const match = new RegExp(`;\\s*${name}=(?:"((?:[^"\\\\]|\\\\.)*)"|([^\\s;]+))`, "iu").exec(line)
  const text = match?.[1]?.replaceAll(/\\(["\\])/gu, "$1") ?? match?.[2]
  return text?.replaceAll(/%0a/giu, "\n").replaceAll(/%0d/giu, "\r").replaceAll(/%22/gu, '"')
}
