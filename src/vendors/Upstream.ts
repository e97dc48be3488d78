import { Context, Duration, Effect, Exit, Layer, Redacted, Schema } from "effect"
import { buildConnector } from "undici"
import type { Client } from "undici"
import { Catalog } from "../catalog/Catalog.ts"
import type { AccountSetting } from "../domain/Provider.ts"
import { makeSimulator } from "../sandbox/UpstreamSimulator.ts"
import { UpstreamConnections } from "./UpstreamConnections.ts"
import { UpstreamExchange } from "./UpstreamExchange.ts"
import type { UpstreamAnswer, UpstreamRequest } from "./UpstreamExchange.ts"

/** No answer came. `unsent`: certainly not one byte was sent. */
export class UpstreamFailure extends Schema.TaggedError<UpstreamFailure>()("UpstreamFailure", {
  kind: Schema.Literals(["unsent", "timeout", "broken"]),
  /** For the log: no key, no body. */
  detail: Schema.String
}) {}

/** The raw upstream call: the key put in, nothing retried, aborted when the caller is interrupted. */
export class Upstream extends Context.Service<
  Upstream,
  {
    readonly send: (
      account: AccountSetting,
      request: UpstreamRequest
    ) => Effect.Effect<UpstreamAnswer, UpstreamFailure>
    /** The same for a caller who is no fiber; answers what ends it. Never throws. */
    readonly sendUnsafe: (
      account: AccountSetting,
      request: UpstreamRequest,
      done: (exit: Exit.Exit<UpstreamAnswer, UpstreamFailure>) => void
    ) => () => void
    /** Answers in the vendor's format without an account. Contract 7. */
    readonly simulate: (
      provider: AccountSetting["provider"],
      request: UpstreamRequest
    ) => Effect.Effect<UpstreamAnswer>
  }
>()("gateway/vendors/Upstream") {
  static readonly layer = (options: { readonly timeout: Duration.Duration }) =>
    Layer.effect(
      Upstream,
      Effect.gen(function* () {
        const { upstream } = yield* Catalog
        const origins = yield* makeOrigins(Duration.toMillis(options.timeout))
        return Upstream.of({
          send: (account, request) =>
            Effect.callback((resume) => Effect.sync(sendUnsafe(origins, account, request, resume))),
          sendUnsafe: (account, request, done) => sendUnsafe(origins, account, request, done),
          simulate: makeSimulator(upstream)
        })
      })
    )
}

/** A connection that does not come about in this time is given up, before anything was sent. */
const connectMillis = 10_000

/** Idle connections are closed before most servers would do it, so that none breaks under a call. */
const keepAliveMillis = 4000

/** The connections of each origin. */
type Origins = (origin: string) => UpstreamConnections

const makeOrigins = Effect.fnUntraced(function* (timeoutMillis: number) {
  const optionsOf = (): Client.Options => ({
    allowH2: false,
    pipelining: 1,
    // One for the connections of an origin, which resume each other's TLS sessions
    connect: buildConnector({
      allowH2: false,
      timeout: Math.min(connectMillis, timeoutMillis)
    }),
    headersTimeout: timeoutMillis,
    bodyTimeout: timeoutMillis,
    keepAliveTimeout: keepAliveMillis
  })
  const origins = new Map<string, UpstreamConnections>()
  yield* Effect.addFinalizer(() =>
    Effect.promise(() => Promise.all(Array.from(origins.values(), (it) => it.destroy())))
  )
  // As many as there are base addresses in the settings
  return (origin: string): UpstreamConnections => {
    const known = origins.get(origin)
    if (known !== undefined) return known
    const made = new UpstreamConnections(origin, optionsOf())
    origins.set(origin, made)
    return made
  }
})

const sendUnsafe = (
  origins: Origins,
  account: AccountSetting,
  request: UpstreamRequest,
  done: (exit: Exit.Exit<UpstreamAnswer, UpstreamFailure>) => void
): (() => void) => {
  const target = targetOf(account.baseUrl, request.path)
  const exchange = new UpstreamExchange(
    {
      answered: (answer) => done(Exit.succeed(answer)),
      failed: (kind, error) =>
        done(Exit.fail(new UpstreamFailure({ kind, detail: describe(error) })))
    },
    request.watch
  )
  try {
    exchange.begin(origins(target.origin), {
      path: `${target.path}${request.query}`,
      method: request.method,
      headers: request.headers.concat(credentials(account)),
      body: request.body.length === 0 ? null : request.body
    })
  } catch (defect) {
    done(Exit.die(defect))
  }
  return () => exchange.abort()
}

/** The key where the vendor wants it. vendors.md A2 to A4. */
const credentials = ({ key, provider }: AccountSetting): ReadonlyArray<string> => {
  const value = Redacted.value(key)
  switch (provider) {
    case "anthropic":
      return ["x-api-key", value]
    case "gemini":
      return ["x-goog-api-key", value]
    default:
      return ["authorization", `Bearer ${value}`]
  }
}

interface Target {
  readonly origin: string
  readonly path: string
}

const bases = new Map<string, Target>()
const version = /^\/v\d+(?:(?:alpha|beta)\d*)?(?=\/|$)/u

/**
 * Base and path: a version segment at the end of the base gives way to the one that the path begins
 * with, so that it is never doubled. Contract 9.
 */
const targetOf = (baseUrl: string, path: string): Target => {
  let base = bases.get(baseUrl)
  if (base === undefined) {
    const url = new URL(baseUrl)
    const trimmed = url.pathname.replace(/\/+$/u, "").replace(/\/v\d+(?:(?:alpha|beta)\d*)?$/u, "")
    base = { origin: url.origin, path: trimmed }
    bases.set(baseUrl, base)
  }
  return version.test(path)
    ? { origin: base.origin, path: `${base.path}${path}` }
    : { origin: base.origin, path: `${new URL(baseUrl).pathname.replace(/\/+$/u, "")}${path}` }
}

/** Name and code of the error: messages of the transport may quote addresses, never keys. */
const describe = (error: Error): string =>
  "code" in error && typeof error.code === "string" ? `${error.name} ${error.code}` : error.name
