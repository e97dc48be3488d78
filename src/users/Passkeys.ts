import type * as WebAuthn from "@simplewebauthn/server"
import { Context, DateTime, Effect, Layer, Option, Schema } from "effect"
import { hash, randomBytes } from "node:crypto"
import { isIP } from "node:net"
import { AppConfig } from "../config/Config.ts"
import { makePasskeyId } from "../domain/Ids.ts"
import type { PasskeyId, SessionId, UserId } from "../domain/Ids.ts"
import { passkeyChallengeMinutes, passkeysPerUserMax } from "../domain/limits/SignInLimits.ts"
import type { PageRequest } from "../domain/PageRequest.ts"
import type { PasskeyAssertion, PasskeyAttestation } from "../domain/Passkey.ts"
import { problem } from "../domain/Problem.ts"
import type { Problem, StoreUnavailable } from "../domain/Problem.ts"
import type { Session } from "../domain/Session.ts"
import { Secrets } from "../process/secrets/Secrets.ts"
import { makeOwnerProof } from "./OwnerProof.ts"
import { PasskeyStore } from "./PasskeyStore.ts"
import type { PasskeyRow } from "./PasskeyStore.ts"
import type { UserOwner } from "./SessionStore.ts"

export type { PasskeyRow } from "./PasskeyStore.ts"

type Failure = Problem | StoreUnavailable

export interface PasskeyRequest {
  readonly name: string
  readonly credential: PasskeyAttestation
  readonly password: Option.Option<string>
}

/**
 * Passkeys: discoverable WebAuthn credentials with user verification. The relying party is the host of `BASE_URL`.
 * docs/reference/sessions.md#passkeys
 */
export class Passkeys extends Context.Service<
  Passkeys,
  {
    /** False if the host of `BASE_URL` is an IP address, for which browsers create no passkeys. */
    readonly isAvailable: boolean
    /** The options of a sign-in ceremony. Fails with 2005 if passkeys are not available. */
    readonly signInOptions: Effect.Effect<SignInOptions, Problem>
    /** Verifies an assertion and returns its user. Fails with 1005. */
    readonly prove: (assertion: PasskeyAssertion) => Effect.Effect<UserOwner, Failure>
    /** The options of a registration ceremony. Fails with 1004 or 2005. */
    readonly creationOptions: (session: Session) => Effect.Effect<CreationOptions, Failure>
    /** Fails with 1004, 1005, 1201, 2001, or 2010 (too many passkeys, or already registered). */
    readonly create: (
      session: Session,
      request: PasskeyRequest,
      address: Option.Option<string>
    ) => Effect.Effect<PasskeyRow, Failure>
    readonly list: (
      userId: UserId,
      page: PageRequest
    ) => Effect.Effect<ReadonlyArray<PasskeyRow>, StoreUnavailable>
    /** Removes a passkey and ends the other sessions that the user's passkeys opened. Fails with 2005. */
    readonly remove: (
      id: PasskeyId,
      owner: UserId | undefined,
      except: SessionId | undefined
    ) => Effect.Effect<void, Failure>
  }
>()("gateway/users/Passkeys") {
  static readonly layer = Layer.effect(
    Passkeys,
    Effect.gen(function* () {
      const store = yield* PasskeyStore
      const { baseUrl, serviceName } = yield* AppConfig
      const proveOwner = yield* makeOwnerProof
      const { challengeFor, take } = yield* makeChallenges
      const { hostname, origin } = new URL(baseUrl)
      const isAvailable = isIP(hostname.replace(/^\[|\]$/gu, "")) === 0
      const available = isAvailable ? Effect.void : Effect.fail(unavailable)
      const expected = { expectedOrigin: origin, expectedRPID: hostname }

      return Passkeys.of({
        isAvailable,
        signInOptions: Effect.gen(function* () {
          yield* available
          return {
            challenge: yield* challengeFor(signInSubject),
            rpId: hostname,
            timeout: timeoutMillis,
            userVerification: "required" as const
          }
        }),
        prove: Effect.fn("Passkeys.prove")(function* (assertion) {
          const challenge = yield* take(assertion.response.clientDataJSON, signInSubject)
          const found = yield* store.find(bytesOf(assertion.id))
          if (Option.isNone(found)) return yield* refused
          const passkey = found.value
          if (assertion.response.userHandle !== handleOf(passkey.userId)) return yield* refused
          const { authenticationInfo, verified } = yield* verify((it) =>
            it.verifyAuthenticationResponse({
              ...expected,
              response: assertionOf(assertion),
              expectedChallenge: challenge,
              requireUserVerification: true,
              credential: {
                id: assertion.id,
                publicKey: Uint8Array.from(passkey.publicKey),
                counter: passkey.signCount
              }
            })
          )
          if (!verified) return yield* refused
          const isUsed = yield* store.use(
            passkey,
            authenticationInfo.newCounter,
            yield* DateTime.now
          )
          if (!isUsed) return yield* refused
          return { _tag: "User", userId: passkey.userId, epoch: passkey.epoch } as const
        }),
        creationOptions: Effect.fn("Passkeys.creationOptions")(function* (session) {
          yield* available
          const { id, method, userId } = session
          if (userId === null || method === "api_key") return yield* notOwn
          const others = yield* store.credentialsOf(userId)
          const rp = { id: hostname, name: serviceName }
          return creationOf({ rp, session, userId, others, challenge: yield* challengeFor(id) })
        }),
        create: Effect.fn("Passkeys.create")(function* (session, request, address) {
          const { credential, name, password } = request
          const user = yield* proveOwner(session, password, address)
          const challenge = yield* take(credential.response.clientDataJSON, session.id)
          const { registrationInfo, verified } = yield* verify((it) =>
            it.verifyRegistrationResponse({
              ...expected,
              response: attestationOf(credential),
              expectedChallenge: challenge,
              requireUserVerification: true,
              supportedAlgorithmIDs: algorithms
            })
          )
          if (!verified) return yield* refused
          const now = yield* DateTime.now
          const { counter, id, publicKey } = registrationInfo.credential
          const created = yield* store.create(
            {
              id: makePasskeyId(DateTime.toEpochMillis(now)),
              userId: user.id,
              credentialId: bytesOf(id),
              publicKey,
              signCount: counter,
              name,
              now
            },
            passkeysPerUserMax
          )
          return yield* Effect.mapError(Effect.fromOption(created), () => tooMany)
        }),
        list: store.list,
        remove: Effect.fn("Passkeys.remove")(function* (id, owner, except) {
          const removed = yield* store.remove(id, owner, except)
          if (!removed) return yield* problem(2005, `There is no passkey ${id}`)
        })
      })
    })
  )
}

interface SignInOptions {
  readonly challenge: string
  readonly rpId: string
  readonly timeout: number
  readonly userVerification: "required"
}

interface CreationOptions {
  readonly challenge: string
  readonly rp: { readonly id: string; readonly name: string }
  readonly user: { readonly id: string; readonly name: string; readonly displayName: string }
  readonly pubKeyCredParams: ReadonlyArray<{ readonly type: "public-key"; readonly alg: number }>
  readonly timeout: number
  readonly attestation: "none"
  readonly excludeCredentials: ReadonlyArray<{ readonly type: "public-key"; readonly id: string }>
  readonly authenticatorSelection: {
    readonly residentKey: "required"
    readonly requireResidentKey: boolean
    readonly userVerification: "required"
  }
}

interface Creation {
  readonly rp: CreationOptions["rp"]
  readonly session: Session
  readonly userId: UserId
  /** The user's existing credentials, so that a device does not create a second one. */
  readonly others: ReadonlyArray<Uint8Array>
  readonly challenge: string
}

const creationOf = ({ challenge, others, rp, session, userId }: Creation): CreationOptions => ({
  challenge,
  rp,
  user: {
    id: handleOf(userId),
    name: session.email ?? "",
    displayName: session.name ?? session.email ?? ""
  },
  pubKeyCredParams: algorithms.map((alg) => ({ type: "public-key", alg })),
  timeout: timeoutMillis,
  attestation: "none",
  excludeCredentials: others.map((other) => ({
    type: "public-key",
    id: Buffer.from(other).toString("base64url")
  })),
  authenticatorSelection: {
    residentKey: "required",
    requireResidentKey: true,
    userVerification: "required"
  }
})

const timeoutMillis = passkeyChallengeMinutes * 60_000

/** The same for an unknown passkey, a wrong signature, and a used or expired challenge. */
const refused = problem(1005, "The passkey was refused: try again, or sign in another way")
const unavailable = problem(
  2005,
  "There are no passkeys at this address: BASE_URL has an IP address instead of a name"
)
const notOwn = problem(1004, "Only a user who signed in without an API key can create a passkey")
const tooMany = problem(
  2010,
  `The passkey is registered already, or the user has ${passkeysPerUserMax}: remove one first`
)

/** EdDSA, ES256 and RS256, which cover all authenticators. */
const algorithms = [-8, -7, -257]

/** The subject of sign-in challenges, because a sign-in has no session yet. */
const signInSubject = "sign-in"

/** Loaded when the first passkey is used, because it includes a certificate parser that nothing else needs. */
const library = Effect.promise(() => import("@simplewebauthn/server"))

/** The library throws for any mismatch. The client does not learn the reason. */
const verify = <A>(run: (it: typeof WebAuthn) => Promise<A>) =>
  Effect.flatMap(library, (it) => Effect.tryPromise({ try: () => run(it), catch: () => refused }))

const assertionOf = ({ id, rawId, response, type }: PasskeyAssertion) => ({
  id,
  rawId,
  type,
  clientExtensionResults: {},
  response: {
    clientDataJSON: response.clientDataJSON,
    authenticatorData: response.authenticatorData,
    signature: response.signature
  }
})

const attestationOf = ({ id, rawId, response, type }: PasskeyAttestation) => ({
  id,
  rawId,
  type,
  clientExtensionResults: {},
  response: {
    clientDataJSON: response.clientDataJSON,
    attestationObject: response.attestationObject
  }
})

const bytesOf = (text: string): Uint8Array => Buffer.from(text, "base64url")

/** The WebAuthn user handle: the bytes of the user's id. */
const handleOf = (userId: UserId): string =>
  Buffer.from(userId.replaceAll("-", ""), "hex").toString("base64url")

const ClientData = Schema.fromJsonString(
  Schema.Struct({ challenge: Schema.String, crossOrigin: Schema.optionalKey(Schema.Boolean) })
)

const signedText = /^([0-9a-f]{32})\.(\d{1,16})\.([0-9a-f]{64})$/u

/**
 * Challenges contain their expiry and a MAC, so creating one stores nothing. An answered challenge is stored until it
 * expires, so that no process accepts it twice.
 */
const makeChallenges = Effect.gen(function* () {
  const store = yield* PasskeyStore
  const secrets = yield* Secrets
  const purpose = "passkey challenge"
  const challengeFor = (subject: string) =>
    Effect.map(DateTime.now, (now) => {
      const nonce = randomBytes(16).toString("hex")
      const expires = DateTime.toEpochMillis(now) + timeoutMillis
      const mac = secrets.mac(purpose, `${nonce}.${expires}.${subject}`)
      return Buffer.from(`${nonce}.${expires}.${mac}`).toString("base64url")
    })
  /** Takes the challenge from the client data and checks that it was made for this subject. Fails with 1005. */
  const take = Effect.fnUntraced(function* (clientData: string, subject: string) {
    const text = Buffer.from(clientData, "base64url").toString("utf8")
    const data = yield* Schema.decodeEffect(ClientData)(text).pipe(Effect.mapError(() => refused))
    if (data.crossOrigin === true) return yield* refused
    const parts = signedText.exec(Buffer.from(data.challenge, "base64url").toString("utf8"))
    const [, nonce = "", expires = "", mac = ""] = parts ?? []
    const isOwn = parts !== null && secrets.isMac(purpose, `${nonce}.${expires}.${subject}`, mac)
    const now = yield* DateTime.now
    if (!isOwn || Number(expires) <= DateTime.toEpochMillis(now)) return yield* refused
    const digest = hash("sha256", data.challenge, "buffer")
    const isFirst = yield* store.takeChallenge(digest, DateTime.makeUnsafe(Number(expires)))
    if (!isFirst) return yield* refused
    return data.challenge
  })
  return { challengeFor, take }
})
