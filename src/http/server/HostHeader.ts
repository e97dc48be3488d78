import { IncomingMessage } from "node:http"

/** HTTP/1.1 asks for exactly one `Host`; Node's own refusal has no body. RFC 9112, section 3.2. */
export const hasOneHost = (source: object): boolean => {
  if (!(source instanceof IncomingMessage) || source.httpVersion === "1.0") return true
  let hosts = 0
  const { rawHeaders } = source
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at]
    if (name?.length === 4 && name.toLowerCase() === "host") hosts += 1
  }
  return hosts === 1
}
