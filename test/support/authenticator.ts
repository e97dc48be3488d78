import { createHash, generateKeyPairSync, randomBytes, sign } from "node:crypto"

/** A software passkey with which tests answer the gateway's challenges, as a browser does or incorrectly. */

const text = (value: string): Buffer =>
  Buffer.concat([Buffer.of(0x60 + value.length), Buffer.from(value)])
const byteString = (value: Buffer): Buffer =>
  value.length < 256
    ? Buffer.concat([Buffer.of(0x58, value.length), value])
    : Buffer.concat([Buffer.of(0x59, value.length >> 8, value.length & 255), value])

const sha256 = (value: Buffer | string): Buffer => createHash("sha256").update(value).digest()
const encoded = (value: Buffer | string): string => Buffer.from(value).toString("base64url")

export interface Answer {
  readonly challenge: string
  readonly origin?: string
  readonly rpId?: string
  readonly type?: string
  readonly counter?: number
  /** Whether the authenticator reports user verification and user presence. */
  readonly isVerified?: boolean
  readonly isPresent?: boolean
  readonly crossOrigin?: boolean
}

export const makeAuthenticator = (of: { readonly origin: string; readonly rpId: string }) => {
  const { privateKey, publicKey } = generateKeyPairSync("ec", { namedCurve: "P-256" })
  const { x = "", y = "" } = publicKey.export({ format: "jwk" })
  const credentialId = randomBytes(16)
  const id = encoded(credentialId)

  const clientDataOf = (answer: Answer, type: string): Buffer =>
    Buffer.from(
      JSON.stringify({
        type: answer.type ?? type,
        challenge: answer.challenge,
        origin: answer.origin ?? of.origin,
        crossOrigin: answer.crossOrigin ?? false
      })
    )

  const dataOf = (answer: Answer, attested = Buffer.alloc(0)): Buffer => {
    const { counter = 0, isPresent = true, isVerified = true, rpId = of.rpId } = answer
    const head = Buffer.alloc(5)
    head[0] = (isPresent ? 1 : 0) | (isVerified ? 4 : 0) | (attested.length > 0 ? 64 : 0)
    head.writeUInt32BE(counter, 1)
    return Buffer.concat([sha256(rpId), head, attested])
  }

  return {
    id,
    /** What `navigator.credentials.create` returns, as JSON. */
    create: (answer: Answer) => {
      // A COSE key: kty EC2, alg ES256, crv P-256, x, y
      const key = Buffer.concat([
        Buffer.of(0xa5, 0x01, 0x02, 0x03, 0x26, 0x20, 0x01, 0x21),
        byteString(Buffer.from(x, "base64url")),
        Buffer.of(0x22),
        byteString(Buffer.from(y, "base64url"))
      ])
      const attested = Buffer.concat([
        Buffer.alloc(16),
        Buffer.of(0, credentialId.length),
        credentialId,
        key
      ])
      const attestationObject = Buffer.concat([
        Buffer.of(0xa3),
        text("fmt"),
        text("none"),
        text("attStmt"),
        Buffer.of(0xa0),
        text("authData"),
        byteString(dataOf(answer, attested))
      ])
      return {
        id,
        rawId: id,
        type: "public-key",
        clientExtensionResults: { credProps: { rk: true } },
        response: {
          clientDataJSON: encoded(clientDataOf(answer, "webauthn.create")),
          attestationObject: encoded(attestationObject),
          transports: ["internal"]
        }
      }
    },
    /** What `navigator.credentials.get` returns, as JSON. */
    get: (answer: Answer, userId: string) => {
      const clientData = clientDataOf(answer, "webauthn.get")
      const data = dataOf(answer)
      const signature = sign("sha256", Buffer.concat([data, sha256(clientData)]), privateKey)
      return {
        id,
        rawId: id,
        type: "public-key",
        clientExtensionResults: {},
        response: {
          clientDataJSON: encoded(clientData),
          authenticatorData: encoded(data),
          signature: encoded(signature),
          userHandle: encoded(Buffer.from(userId.replaceAll("-", ""), "hex"))
        }
      }
    }
  }
}
