import { createHash, createHmac, generateKeyPairSync, randomBytes, sign } from "node:crypto"
import type { KeyObject } from "node:crypto"

export interface FalKey {
  readonly privateKey: KeyObject
  readonly publicKey: KeyObject
}

export const falKey = (): FalKey => generateKeyPairSync("ed25519")
export const replicateSecret = () => `whsec_${randomBytes(24).toString("base64")}`

/** The keys with which the mock vendors sign and which they publish. A test may change them. */
export const signing = {
  /** fal's keys, as in its JWKS. */
  fal: [falKey()],
  /** The secret of the only Replicate account. */
  replicate: replicateSecret()
}

/** The keys as fal publishes them. The set may contain keys of other kinds. */
export const falJwks = () => ({
  keys: [
    { kty: "RSA", e: "AQAB", n: "AQAB", kid: "other" },
    ...signing.fal.map(({ publicKey }, at) => ({
      ...publicKey.export({ format: "jwk" }),
      kid: String(at)
    }))
  ]
})

export interface SignOptions {
  /** Unix seconds. */
  readonly at: number
  readonly body: string
  readonly id?: string
  /** A key to use instead of the vendor's own. */
  readonly falKey?: FalKey
  readonly replicateSecret?: string
}

const newestKey = (): FalKey => {
  const [key] = signing.fal
  if (key === undefined) throw new Error("fal has no key")
  return key
}

export const falHeaders = ({ at, body, id = "req-1", falKey = newestKey() }: SignOptions) => {
  const hash = createHash("sha256").update(body).digest("hex")
  const message = [id, "user-1", at, hash].join("\n")
  return {
    "x-fal-webhook-request-id": id,
    "x-fal-webhook-user-id": "user-1",
    "x-fal-webhook-timestamp": String(at),
    "x-fal-webhook-signature": sign(null, Buffer.from(message), falKey.privateKey).toString("hex")
  }
}

export const replicateHeaders = ({
  at,
  body,
  id = "msg-1",
  replicateSecret = signing.replicate
}: SignOptions) => {
  const key = Buffer.from(replicateSecret.slice("whsec_".length), "base64")
  const mac = createHmac("sha256", key).update(`${id}.${at}.${body}`).digest("base64")
  return {
    "webhook-id": id,
    "webhook-timestamp": String(at),
    "webhook-signature": `v1,${Buffer.alloc(32).toString("base64")} v1,${mac}`
  }
}

/** Vendors only call https URLs; the mocks also call this machine. */
export const isCallable = (url: string): boolean =>
  url.startsWith("https://") || /^http:\/\/127\.0\.0\.1[:/]/u.test(url)
