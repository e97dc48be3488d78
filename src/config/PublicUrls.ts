import { Config, Effect, Option } from "effect"
import { fault, read } from "./Setting.ts"

const isLoopback = (url: URL): boolean =>
  /^(?:localhost|127\.\d+\.\d+\.\d+|\[::1\])$/u.test(url.hostname)

/** What paths can be put behind. */
const isBase = (url: URL): boolean =>
  /^https?:$/u.test(url.protocol) &&
  [url.search, url.hash, url.username, url.password].every((part) => part === "")

const withoutSlash = (url: URL): string => url.href.replace(/\/+$/u, "")

const baseRemedy =
  "set an absolute http or https URL without a query, such as https://gateway.example.com"

/** The public address, with which links to artifacts begin, without a trailing slash. Contract 9. */
export const baseUrl = (port: number) =>
  Effect.gen(function* () {
    const url = yield* read("BASE_URL", Config.option(Config.URL("BASE_URL")), baseRemedy)
    if (Option.exists(url, (it) => !isBase(it))) {
      return yield* fault("BASE_URL", "cannot stand before a path", baseRemedy)
    }
    return Option.match(url, { onNone: () => `http://localhost:${port}`, onSome: withoutSlash })
  })

/**
 * Where vendors reach this service with callbacks, without a trailing slash. The address of a callback is
 * for its vendor alone: not over plain HTTP, save on this machine, for tests. ADR 0107.
 */
export const publicUrl = Effect.gen(function* () {
  const remedy = "set an absolute https URL that the vendors can reach, without a query"
  const url = yield* read("PUBLIC_URL", Config.option(Config.URL("PUBLIC_URL")), remedy)
  if (Option.exists(url, (it) => !isBase(it) || (it.protocol === "http:" && !isLoopback(it)))) {
    return yield* fault("PUBLIC_URL", "cannot be called by vendors", remedy)
  }
  return Option.map(url, withoutSlash)
})
