import { Clock, Context, Duration, Effect, Layer } from "effect"
import type { Scope } from "effect"
import type { buildConnector, Dispatcher } from "undici"
import type { EgressAllow } from "../domain/network/EgressAllow.ts"
import {
  isAddressHost,
  makeConnector,
  makeGuardedAgent,
  resolveChecked
} from "./EgressConnector.ts"
import type { NameNotResolved, Resolve } from "./EgressConnector.ts"
import { checkUrlText, EgressRefused, refusesAll } from "./EgressRules.ts"
import type { CheckUrlOptions } from "./EgressRules.ts"
import { makeResolve } from "./Resolver.ts"

export interface EgressGuardOptions {
  /** Parsed `EGRESS_ALLOW`; see `parseEgressAllow` and `egressAllowNone`. */
  readonly allow: EgressAllow
  /** Replaces the name servers, for tests. */
  readonly resolve?: Resolve
}

export interface GuardedDispatcherOptions {
  /** PEM certificates trusted instead of the system's, for tests. */
  readonly ca?: string | undefined
  /** The timeout of the TCP connection with its DNS lookup, and of the TLS handshake. Default 30 s. */
  readonly connectTimeoutMillis?: number
  /** The most connections to one origin. Further requests queue. Default 128. */
  readonly connectionsPerOriginMax?: number
  /** Called when a connection to this origin opens. The returned function is called when it closes. */
  readonly onOpened?: (origin: string) => () => void
}

/**
 * Prevents server-side request forgery. Allows only public unicast addresses, checked when a URL is saved and again at
 * every connect. docs/reference/configuration.md#egress-guard
 */
export class EgressGuard extends Context.Service<
  EgressGuard,
  {
    /** Checks a URL without DNS. */
    readonly checkUrl: (url: string, options: CheckUrlOptions) => Effect.Effect<URL, EgressRefused>
    /**
     * Checks a URL when it is saved: like `checkUrl`, and also refuses a host if all of its addresses are refused.
     * Accepts a host that does not resolve, because it may do so later. Does not reveal addresses.
     */
    readonly checkSaved: (
      url: string,
      options: CheckUrlOptions
    ) => Effect.Effect<URL, EgressRefused>
    /** Like `checkUrl`, and also checks every current address of the host. Connecting checks again. */
    readonly resolveAndCheck: (
      url: string,
      options: CheckUrlOptions
    ) => Effect.Effect<URL, EgressRefused | NameNotResolved>
    /**
     * A dispatcher that checks every new connection, which can fail with `EgressRefused`, `NameNotResolved` or
     * `ConnectionFailed`. Redirects are not followed. Closes with its scope.
     */
    readonly dispatcher: (
      options?: GuardedDispatcherOptions
    ) => Effect.Effect<Dispatcher, never, Scope.Scope>
    /** For undici clients that other modules create: checks every connection as `dispatcher` does. */
    readonly connector: (connectTimeoutMillis: number) => buildConnector.connector
  }
>()("gateway/egress/EgressGuard") {
  static readonly layer = (options: EgressGuardOptions): Layer.Layer<EgressGuard> =>
    Layer.succeed(EgressGuard, makeEgressGuard(options))
}

const makeEgressGuard = ({
  allow,
  resolve = makeResolve()
}: EgressGuardOptions): EgressGuard["Service"] => {
  const checkUrl = (url: string, options: CheckUrlOptions) =>
    Effect.suspend(() => Effect.fromResult(checkUrlText(allow, url, options)))

  const resolveAndCheck = Effect.fn("EgressGuard.resolveAndCheck")(function* (
    text: string,
    options: CheckUrlOptions
  ) {
    const url = yield* checkUrl(text, options)
    if (isAddressHost(url.hostname)) return url
    const resolved = yield* Effect.promise(() => resolveChecked(allow, resolve, url.hostname))
    yield* Effect.fromResult(resolved)
    return url
  })

  const checkSaved = Effect.fn("EgressGuard.checkSaved")(function* (
    text: string,
    options: CheckUrlOptions
  ) {
    const url = yield* checkUrl(text, options)
    if (isAddressHost(url.hostname)) return url
    const addresses = yield* Effect.tryPromise((signal) => resolve(url.hostname, signal)).pipe(
      Effect.timeout(savedLookup),
      // Name servers respond in real time, whatever the caller's clock is
      Effect.provideService(Clock.Clock, Clock.Clock.defaultValue()),
      Effect.orElseSucceed((): ReadonlyArray<string> => [])
    )
    if (!refusesAll(allow, url.hostname, addresses)) return url
    const reason = "the URL does not resolve to a public address"
    return yield* new EgressRefused({ host: url.hostname, reason })
  })

  const dispatcher = (options: GuardedDispatcherOptions = {}) =>
    Effect.acquireRelease(
      Effect.sync(() =>
        makeGuardedAgent({
          allow,
          resolve,
          ca: options.ca,
          connectTimeoutMillis: options.connectTimeoutMillis ?? connectTimeoutMillisDefault,
          connectionsPerOriginMax:
            options.connectionsPerOriginMax ?? connectionsPerOriginMaxDefault,
          onOpened: options.onOpened
        })
      ),
      (agent) => Effect.promise(() => agent.destroy())
    )

  const connector = (connectTimeoutMillis: number) =>
    makeConnector({ allow, resolve, connectTimeoutMillis })

  return { checkUrl, checkSaved, resolveAndCheck, dispatcher, connector }
}

const savedLookup = Duration.seconds(2)
const connectTimeoutMillisDefault = 30_000
const connectionsPerOriginMaxDefault = 128
