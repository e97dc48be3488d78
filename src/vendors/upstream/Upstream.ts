import { Context, Duration, Effect, Layer, Redacted, Schema } from "effect"
import { Readable } from "node:stream"
import { buildConnector } from "undici"
import type { Client } from "undici"
import { errorCode } from "../../domain/ErrorCode.ts"
import { pathBeforeVersion } from "../../domain/Provider.ts"
import type { AccountSetting } from "../../domain/Provider.ts"
import { CurrentBodyTurns } from "../../domain/shares/BodyTurns.ts"
import type { BodyTurns } from "../../domain/shares/BodyTurns.ts"
import { sliceBytes } from "../../domain/shares/Slices.ts"
import { GuardedConnector } from "../NamedHosts.ts"
import { SecretMask } from "./SecretMask.ts"
import { UpstreamConnections } from "./UpstreamConnections.ts"
import { UpstreamExchange } from "./UpstreamExchange.ts"
import type { FailureKind, UpstreamResponse, UpstreamRequest } from "./UpstreamExchange.ts"

/** There was no response. `unsent`: certainly no byte of the request was sent. */
export class UpstreamFailure extends Schema.TaggedError<UpstreamFailure>()("UpstreamFailure", {
  kind: Schema.Literals(["unsent", "timeout", "broken", "page"]),
  /** For the log. Contains neither key nor body. */
  detail: Schema.String
}) {}

/** The raw upstream call: adds the key, retries nothing, is aborted when the caller is interrupted. */
export class Upstream extends Context.Service<
  Upstream,
  {
    readonly send: (
      account: AccountSetting,
      request: UpstreamRequest
    ) => Effect.Effect<UpstreamResponse, UpstreamFailure>
  }
>()("gateway/vendors/Upstream") {
  static readonly layer = (options: { readonly timeout: Duration.Duration }) =>
    Layer.effect(
      Upstream,
      Effect.gen(function* () {
        const origins = yield* makeOrigins(Duration.toMillis(options.timeout))
        return Upstream.of({ send: sendWith(origins, yield* CurrentBodyTurns) })
      })
    )
}

/** The time to connect. Nothing is sent before that. */
const connectMillis = 10_000

/** Shorter than the keep-alive of most servers, so that no server closes a connection during a call. */
const keepAliveMillis = 4000

type Origins = (origin: string, isGuarded: boolean) => UpstreamConnections

const makeOrigins = Effect.fnUntraced(function* (timeoutMillis: number) {
  const guarded = yield* GuardedConnector
  const timeout = Math.min(connectMillis, timeoutMillis)
  const optionsOf = (isGuarded: boolean): Client.Options => ({
    allowH2: false,
    pipelining: 1,
    // Shared by the connections of an origin, so that they can resume each other's TLS sessions
    connect: isGuarded ? guarded(timeout) : buildConnector({ allowH2: false, timeout }),
    headersTimeout: timeoutMillis,
    bodyTimeout: timeoutMillis,
    keepAliveTimeout: keepAliveMillis
  })
  const own = new Map<string, UpstreamConnections>()
  const named = new Map<string, UpstreamConnections>()
  yield* Effect.addFinalizer(() =>
    Effect.promise(() =>
      Promise.all(Array.from([...own.values(), ...named.values()], (it) => it.destroy()))
    )
  )
  // One for each base URL in the settings or in a catalog
  return (origin: string, isGuarded: boolean): UpstreamConnections => {
    const origins = isGuarded ? named : own
    const known = origins.get(origin)
    if (known !== undefined) return known
    const made = new UpstreamConnections(origin, optionsOf(isGuarded))
    origins.set(origin, made)
    return made
  }
})

const sendWith =
  (origins: Origins, turns: BodyTurns) =>
  (
    account: AccountSetting,
    request: UpstreamRequest
  ): Effect.Effect<UpstreamResponse, UpstreamFailure> =>
    Effect.callback((resume) => {
      const target = targetOf(account.baseUrl, request.path)
      const exchange = new UpstreamExchange(
        {
          onResponse: (response) => resume(Effect.succeed(response)),
          onFailure: (kind, error) =>
            resume(Effect.fail(new UpstreamFailure({ kind, detail: detailOf(kind, error) })))
        },
        request.watch,
        SecretMask.of(account),
        (bytes, run) => turns.enter(request.user, bytes, run)
      )
      exchange.begin(origins(target.origin, account.guarded === true), {
        path: `${target.path}${request.query}`,
        method: request.method,
        headers: request.headers.concat(credentials(account), lengthOf(request)),
        body: request.upload?.open() ?? sentBody(request.body)
      })
      return Effect.sync(() => exchange.abort())
    })

/** A larger body is sent in parts of this size. */
const partBytes = sliceBytes

/** The `content-length` header of an upload, or of a body sent in parts. */
const lengthOf = ({ body, upload }: UpstreamRequest): ReadonlyArray<string> => {
  const length = upload === undefined ? body.length : upload.length
  return length !== undefined && (upload !== undefined || length > partBytes)
    ? ["content-length", String(length)]
    : []
}

/**
 * undici keeps the body that it is given until the response has ended. A large body is therefore given as a stream, so
 * that only the ended stream stays in memory.
 */
const sentBody = (body: Uint8Array): Uint8Array | Readable | null => {
  if (body.length === 0) return null
  return body.length > partBytes ? new BodyParts(body) : body
}

class BodyParts extends Readable {
  #rest: Uint8Array

  constructor(body: Uint8Array) {
    super()
    this.#rest = body
  }

  override _read(): void {
    const part = this.#rest.subarray(0, partBytes)
    this.#rest = part.length < this.#rest.length ? this.#rest.subarray(partBytes) : noBytes
    this.push(part.length === 0 ? null : part)
  }

  override _destroy(error: Error | null, callback: (error?: Error | null) => void): void {
    this.#rest = noBytes
    callback(error)
  }
}

const noBytes = new Uint8Array()

/** The header with the key. docs/reference/vendors.md#accounts */
const credentials = ({ auth = "bearer", key }: AccountSetting): ReadonlyArray<string> => {
  const value = Redacted.value(key)
  switch (auth) {
    case "bearer":
      return ["authorization", `Bearer ${value}`]
    case "optional-bearer":
      return value === "" ? [] : ["authorization", `Bearer ${value}`]
    case "api-key":
    case "x-api-key":
    case "x-goog-api-key":
      return [auth, value]
  }
}

interface Target {
  readonly origin: string
  readonly path: string
}

const bases = new Map<string, Target>()
const version = /^\/v\d+(?:(?:alpha|beta)\d*)?(?=\/|$)/u

/**
 * Base and path: the version segment of the path replaces the one at the end of the base.
 * docs/reference/configuration.md#vendor-bases
 */
const targetOf = (baseUrl: string, path: string): Target => {
  let base = bases.get(baseUrl)
  if (base === undefined) {
    base = { origin: new URL(baseUrl).origin, path: pathBeforeVersion(baseUrl) }
    bases.set(baseUrl, base)
  }
  return version.test(path)
    ? { origin: base.origin, path: `${base.path}${path}` }
    : { origin: base.origin, path: `${new URL(baseUrl).pathname.replace(/\/+$/u, "")}${path}` }
}

const detailOf = (kind: FailureKind, error: Error): string =>
  kind === "page" ? "responded with a page instead of data" : describe(error)

/** Returns only name and code, because transport errors quote addresses. */
const describe = (error: Error): string => {
  const code = errorCode(error)
  return code === undefined ? error.name : `${error.name} ${code}`
}
