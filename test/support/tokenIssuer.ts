import { Clock, Context, Effect, Layer } from "effect"
import { createHmac, createPublicKey, generateKeyPairSync, sign } from "node:crypto"
import type { JsonWebKey, KeyObject } from "node:crypto"
import { createServer } from "node:http"
import { baseUrl } from "./gateway.ts"
import { listen, stop } from "./localServer.ts"

/** An issuer of JWT access tokens on loopback that also issues tokens that no honest issuer would. */

interface SigningKey {
  readonly kid: string
  readonly alg: "RS256" | "ES256"
  readonly key: KeyObject
}

export const makeKey = (kid: string, alg: SigningKey["alg"] = "RS256"): SigningKey => ({
  kid,
  alg,
  key:
    alg === "RS256"
      ? generateKeyPairSync("rsa", { modulusLength: 2048 }).privateKey
      : generateKeyPairSync("ec", { namedCurve: "P-256" }).privateKey
})

const publicOf = ({ alg, key, kid }: SigningKey): JsonWebKey => ({
  ...createPublicKey(key).export({ format: "jwk" }),
  kid,
  alg,
  use: "sig"
})

const encode = (part: object) => Buffer.from(JSON.stringify(part)).toString("base64url")

/** Signs with the algorithm in the header, which may be one that is never accepted. */
const signed = (header: Record<string, unknown>, claims: object, by: SigningKey): string => {
  const text = `${encode(header)}.${encode(claims)}`
  if (header["alg"] === "none") return `${text}.`
  if (header["alg"] === "HS256") {
    const secret = createPublicKey(by.key).export({ format: "pem", type: "spki" })
    return `${text}.${createHmac("sha256", secret).update(text).digest("base64url")}`
  }
  const signature = sign("sha256", Buffer.from(text), { key: by.key, dsaEncoding: "ieee-p1363" })
  return `${text}.${signature.toString("base64url")}`
}

interface State {
  keys: ReadonlyArray<SigningKey>
  isDown: boolean
  /** The response to return instead of the keys. */
  answer: string | undefined
  /** The path that the keys have moved to, with a redirect from the one in the issuer's metadata. */
  movedTo: string | undefined
  /** How often the keys were requested. */
  reads: number
}

export const startTokenIssuer = async () => {
  const state: State = {
    keys: [makeKey("first")],
    isDown: false,
    answer: undefined,
    movedTo: undefined,
    reads: 0
  }
  const server = createServer((request, response) => {
    if (state.isDown) {
      state.reads += 1
      return void response.writeHead(503).end()
    }
    response.setHeader("content-type", "application/json")
    if (request.url !== "/jwks" && request.url !== state.movedTo) {
      const jwks_uri = `${issuer}/jwks`
      return void response.end(JSON.stringify({ issuer, jwks_uri, authorization_endpoint: issuer }))
    }
    state.reads += 1
    if (state.movedTo !== undefined && request.url !== state.movedTo) {
      return void response.writeHead(302, { location: state.movedTo }).end()
    }
    response.end(state.answer ?? JSON.stringify({ keys: state.keys.map(publicOf) }))
  })
  const issuer = `http://127.0.0.1:${await listen(server)}`
  return { issuer, state, stop: () => stop(server) }
}

export class TokenIssuer extends Context.Service<
  TokenIssuer,
  Awaited<ReturnType<typeof startTokenIssuer>>
>()("test/TokenIssuer") {
  static readonly layer = Layer.effect(
    TokenIssuer,
    Effect.acquireRelease(Effect.promise(startTokenIssuer), ({ stop }) => Effect.promise(stop))
  )
}

interface Issued {
  readonly claims?: Record<string, unknown>
  readonly header?: Record<string, unknown>
  readonly by?: SigningKey
}

let issued = 0

/**
 * A token for this gateway that is valid for five minutes and has the scope `inference`, unless the options say
 * otherwise.
 */
export const issueToken = Effect.fnUntraced(function* ({ by, claims, header }: Issued = {}) {
  const { issuer, state } = yield* TokenIssuer
  const key = by ?? state.keys[0]!
  const now = Math.floor((yield* Clock.currentTimeMillis) / 1000)
  issued += 1
  return signed(
    { typ: "at+jwt", alg: key.alg, kid: key.kid, ...header },
    {
      iss: issuer,
      aud: `${baseUrl}/mcp`,
      sub: "u1",
      client_id: "claude",
      iat: now,
      exp: now + 300,
      jti: `token-${issued}`,
      scope: "inference",
      ...claims
    },
    key
  )
})
