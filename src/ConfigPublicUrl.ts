import { Config, Effect, Option } from "effect"
import { fault, read } from "./ConfigRead.ts"

const isLoopback = (url: URL): boolean =>
  /^(?:localhost|127\.\d+\.\d+\.\d+|\[::1\])$/u.test(url.hostname)

/**
 * Where vendors reach this service with callbacks, without a trailing slash. The address of a callback is
 * for its vendor alone: not over plain HTTP, save on this machine, for tests. ADR 0107.
 */
export const publicUrl = Effect.gen(function* () {
  const remedy = "set an absolute https URL that the vendors can reach, without a query"
  const url = yield* read("PUBLIC_URL", Config.option(Config.URL("PUBLIC_URL")), remedy)
  const isUsable = Option.match(url, {
    onNone: () => true,
    onSome: (it) =>
      (it.protocol === "https:" || (it.protocol === "http:" && isLoopback(it))) &&
      [it.search, it.hash, it.username, it.password].every((part) => part === "")
  })
  if (!isUsable) return yield* fault("PUBLIC_URL", "cannot be called by vendors", remedy)
  return Option.map(url, (it) => it.href.replace(/\/+$/u, ""))
})
