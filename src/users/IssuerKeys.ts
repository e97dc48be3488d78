import { Clock, Duration, Effect, Fiber, Schema } from "effect"
import type { Scope } from "effect"
import type { AuthorizationServer, JWKS } from "oauth4webapi"
import type { OidcSettings } from "../config/SignInSettings.ts"
import type { Problem } from "../domain/Problem.ts"
import { discovered, discoverySeconds, ProviderFault, unreachable } from "./OidcDiscovery.ts"

/** The issuer of access tokens, with the keys that it published last. */
export interface Issuer {
  readonly server: AuthorizationServer
  readonly keys: JWKS
}

/** Keys of this age are read again; until then a new key is found by its id. */
const freshMillis = Duration.toMillis("5 minutes")
/** An issuer that cannot be reached serves with older keys for so long. */
const usableMillis = Duration.toMillis("1 hour")
/** Whatever tokens are sent, the issuer is asked no more often. */
const betweenReadsMillis = Duration.toMillis("10 seconds")
/** Of a key set; those of large providers have some kilobytes. */
const keySetBytesMax = 256 * 1024

/**
 * The issuer with its keys, read when a token names a key that is not known, and every five minutes. Requests share
 * one read and at most one begins in ten seconds, so that made-up key ids cost the issuer nothing. Fails with 5002.
 */
export const makeIssuerKeys = Effect.fnUntraced(function* (settings: OidcSettings) {
  const scope = yield* Effect.scope
  const provider = discovered(settings)
  let known: { readonly issuer: Issuer; readonly at: number } | undefined
  let running: Fiber.Fiber<void> | undefined
  let begunAt = Number.NEGATIVE_INFINITY

  const read = Effect.gen(function* () {
    const server = (yield* provider).serverMetadata()
    const keys = yield* Effect.tryPromise({
      try: () => fetchKeys(settings, server.jwks_uri),
      catch: (cause) => new ProviderFault({ cause })
    })
    known = { issuer: { server, keys }, at: yield* Clock.currentTimeMillis }
  }).pipe(
    Effect.catchTag("ProviderFault", (cause) =>
      Effect.logWarning("The keys of OIDC_ISSUER cannot be read", cause)
    ),
    // Already logged
    Effect.catchTag("Problem", () => Effect.void),
    Effect.ensuring(
      Effect.sync(() => {
        running = undefined
      })
    )
  )

  /** Its own fiber, so that a client that leaves does not end what others wait for. */
  const begin = (scope: Scope.Scope, now: number) =>
    Effect.gen(function* () {
      if (running !== undefined || now - begunAt < betweenReadsMillis) return
      begunAt = now
      running = yield* Effect.forkIn(read, scope)
    })

  return (keyId: string | undefined): Effect.Effect<Issuer, Problem> =>
    Effect.gen(function* () {
      const now = yield* Clock.currentTimeMillis
      const age = known === undefined ? Number.POSITIVE_INFINITY : now - known.at
      const isKnown = known !== undefined && hasKey(known.issuer, keyId)
      if (!isKnown || age >= freshMillis) yield* begin(scope, now)
      if (known !== undefined && isKnown && age < usableMillis) return known.issuer
      if (running !== undefined) yield* Fiber.await(running)
      return known === undefined || now - known.at >= usableMillis
        ? yield* unreachable
        : known.issuer
    })
})

const hasKey = ({ keys }: Issuer, keyId: string | undefined): boolean =>
  keyId === undefined || keys.keys.some(({ kid }) => kid === keyId)

const hasKeys = Schema.is(
  Schema.Struct({ keys: Schema.Array(Schema.Record(Schema.String, Schema.Unknown)) })
)
const isKeySet = (value: unknown): value is JWKS => hasKeys(value)

const fetchKeys = async ({ issuer }: OidcSettings, at: string | undefined): Promise<JWKS> => {
  const url = new URL(at ?? "")
  // As discovery: only a loopback issuer may be http
  if (url.protocol !== "https:" && issuer.protocol !== "http:")
    throw new Error(`${url.href} is not https`)
  const response = await fetch(url, {
    headers: { accept: "application/json, application/jwk-set+json" },
    redirect: "error",
    signal: AbortSignal.timeout(discoverySeconds * 1000)
  })
  if (response.status !== 200 || response.body === null)
    throw new Error(`${url.href}: ${response.status}`)
  const chunks: Array<Uint8Array> = []
  let length = 0
  for await (const chunk of response.body) {
    length += chunk.length
    if (length > keySetBytesMax)
      throw new Error(`${url.href} is larger than ${keySetBytesMax} bytes`)
    chunks.push(chunk)
  }
  const value: unknown = JSON.parse(Buffer.concat(chunks).toString())
  if (!isKeySet(value)) throw new Error(`${url.href} is not a key set`)
  return value
}
