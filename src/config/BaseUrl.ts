/** Whether paths can be appended to a URL: http(s), without query, fragment and credentials. */
export const isBase = (url: URL): boolean =>
  /^https?:$/u.test(url.protocol) &&
  [url.search, url.hash, url.username, url.password].every((part) => part === "")

export const isLoopback = ({ hostname }: URL): boolean =>
  /^(?:localhost|127\.\d+\.\d+\.\d+|\[::1\])$/u.test(hostname)

export const withoutSlash = ({ href }: URL): string => href.replace(/\/+$/u, "")
