import { Clock, Duration, Effect, Fiber, Schema } from "effect"
import type { Scope } from "effect"
import type { AuthorizationServer, JWKS } from "oauth4webapi"
import type { OidcSettings } from "../config/SignInSettings.ts"
import type { Problem } from "../domain/Problem.ts"
import { discovered, discoverySeconds, ProviderFault, unreachable } from "./OidcDiscovery.ts"

/** The issuer of access tokens, and the keys that were last read from it. */
export interface Issuer {
  readonly server: AuthorizationServer
  readonly keys: JWKS
}

/** Keys older than this are read again in the background. Before that, only an unknown key id triggers a read. */
const freshMillis = Duration.toMillis("5 minutes")
/** While the issuer cannot be reached, its last keys are used for this long. */
const usableMillis = Duration.toMillis("1 hour")
/** The minimum time between two reads, whatever tokens are sent. */
const betweenReadsMillis = Duration.toMillis("10 seconds")
/** The maximum size of a key set; large providers' sets have a few kilobytes. */
const keySetBytesMax = 256 * 1024

/**
 * The issuer with its keys. They are read when a token names an unknown key, and every five minutes. Requests share one
 * read, and reads start at least ten seconds apart, so tokens with made-up key ids do not burden the issuer. Fails with
 * 5002.
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

  /** Reads in its own fiber, so that a client that disconnects does not interrupt a read that others wait for. */
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
  // As in discovery, only a loopback issuer may use http
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
