import { Config, Effect, Option } from "effect"
import { isBase, isLoopback, withoutSlash } from "./BaseUrl.ts"
import { fault, read } from "./Setting.ts"

const baseRemedy =
  "set an absolute http or https URL without a query, such as https://gateway.example.com"

/** The public base URL, used for artifact links, without a trailing slash. docs/reference/configuration.md#address */
export const baseUrl = Effect.gen(function* () {
  const url = yield* read("BASE_URL", Config.option(Config.URL("BASE_URL")), baseRemedy)
  if (Option.exists(url, (it) => !isBase(it))) {
    return yield* fault("BASE_URL", "cannot be the start of a URL", baseRemedy)
  }
  return Option.map(url, withoutSlash)
})

/**
 * The base URL to which vendors send callbacks, without a trailing slash. The URL of a callback contains its token, so
 * plain HTTP is accepted only on loopback addresses, for tests. ADR 0107.
 */
export const publicUrl = Effect.gen(function* () {
  const remedy = "set an absolute https URL that the vendors can reach, without a query"
  const url = yield* read("PUBLIC_URL", Config.option(Config.URL("PUBLIC_URL")), remedy)
  if (Option.exists(url, (it) => !isBase(it) || (it.protocol === "http:" && !isLoopback(it)))) {
    return yield* fault("PUBLIC_URL", "cannot be called by vendors", remedy)
  }
  return Option.map(url, withoutSlash)
})
