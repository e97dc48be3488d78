import { Context, Effect, Layer } from "effect"
import type { Scope } from "effect"
import type { Dispatcher } from "undici"
import type { EgressAllow } from "./EgressAllow.ts"
import { isAddressHost, makeGuardedAgent, resolveAndJudge } from "./EgressConnector.ts"
import type { NameNotResolved, Resolve } from "./EgressConnector.ts"
import { judgeUrl } from "./EgressRules.ts"
import type { CheckUrlOptions, EgressRefused } from "./EgressRules.ts"
import { makeResolve } from "./Resolver.ts"

export interface EgressGuardOptions {
  /** Parsed `EGRESS_ALLOW`; see `parseEgressAllow` and `egressAllowNone`. Contract 9. */
  readonly allow: EgressAllow
  /** All addresses of a name, in place of the name servers. For tests. */
  readonly resolve?: Resolve
}

export interface GuardedDispatcherOptions {
  /** PEM certificates that are trusted in place of the system's, for tests. */
  readonly ca?: string | undefined
  /** Bound of the TCP connection with its DNS look-up, and again of the TLS handshake. Default 30 s. */
  readonly connectTimeoutMillis?: number
  /** Connections to one origin; further requests queue. Default 128. */
  readonly connectionsPerOriginMax?: number
  /** A connection to this origin has come about; called again by what it answers when it is closed. */
  readonly onOpened?: (origin: string) => () => void
}

/**
 * Keeps the service from being used to reach the inside of its own network (server-side request
 * forgery): public unicast addresses only, checked at save and again at every connect. Contract 5, 8.
 */
export class EgressGuard extends Context.Service<
  EgressGuard,
  {
    /** At save time: what can be said of a URL without DNS. */
    readonly checkUrl: (url: string, options: CheckUrlOptions) => Effect.Effect<URL, EgressRefused>
    /** The same, and every address that the host resolves to now. Connecting checks again. */
    readonly resolveAndCheck: (
      url: string,
      options: CheckUrlOptions
    ) => Effect.Effect<URL, EgressRefused | NameNotResolved>
    /**
     * A dispatcher whose every new connection is guarded: it fails with `EgressRefused`,
     * `NameNotResolved` or `ConnectionFailed`. It follows no redirects. Closed with its scope.
     */
    readonly dispatcher: (
      options?: GuardedDispatcherOptions
    ) => Effect.Effect<Dispatcher, never, Scope.Scope>
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
    Effect.suspend(() => Effect.fromResult(judgeUrl(allow, url, options)))

  const resolveAndCheck = Effect.fn("EgressGuard.resolveAndCheck")(function* (
    text: string,
    options: CheckUrlOptions
  ) {
    const url = yield* checkUrl(text, options)
    if (isAddressHost(url.hostname)) return url
    const resolved = yield* Effect.promise(() => resolveAndJudge(allow, resolve, url.hostname))
    yield* Effect.fromResult(resolved)
    return url
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

  return { checkUrl, resolveAndCheck, dispatcher }
}

const connectTimeoutMillisDefault = 30_000
const connectionsPerOriginMaxDefault = 128
