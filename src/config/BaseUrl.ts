/** Whether paths can be appended to a URL: http(s), without query, fragment and credentials. */
export const isBase = ({ href, password, protocol, username }: URL): boolean =>
  // `search` and `hash` do not show a lone ? or #
  /^https?:$/u.test(protocol) && username === "" && password === "" && !/[?#]/u.test(href)

export const isLoopback = ({ hostname }: URL): boolean =>
  /^(?:localhost|127\.\d+\.\d+\.\d+|\[::1\])$/u.test(hostname)

export const withoutSlash = ({ href }: URL): string => href.replace(/\/+$/u, "")
