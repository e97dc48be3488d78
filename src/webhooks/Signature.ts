import { SecureRandom } from "effect/crypto"
import { Base64 } from "effect/encoding"
import { createHmac } from "node:crypto"

/** The prefix of the hex digits, so that the algorithm can change later. docs/reference/requirements.md#versioning */
const signatureVersion = "v1"

/** Prefix of every signing secret. */
const secretPrefix = "whsec_"

const secretBytes = 32

/** The parts of a delivery request that are signed. docs/reference/webhooks.md#delivery-request */
export interface SignedParts {
  /** `whd_…`, the same for every attempt. */
  readonly deliveryId: string
  /** When the request was signed, in Unix seconds. Different for every attempt. */
  readonly timestampSeconds: number
  /** The exact bytes that are sent. */
  readonly body: Uint8Array
}

/**
 * The value of the signature header, `v1=<hex>`: HMAC-SHA256 of `<delivery_id>.<timestamp>.<raw_body>`. The key is the
 * whole secret string as UTF-8, including `whsec_`. docs/reference/webhooks.md#signature
 *
 * Synchronous, because it runs for every attempt on the hot path.
 */
export const sign = (secret: string, parts: SignedParts): string => {
  const hex = createHmac("sha256", secret)
    .update(`${parts.deliveryId}.${parts.timestampSeconds}.`)
    .update(parts.body)
    .digest("hex")
  return `${signatureVersion}=${hex}`
}

/** `whsec_` and padded Base64, which is the form of secrets that Standard Webhooks defines. */
const standardSecret = /^whsec_(?<key>[A-Za-z0-9+/]{43}=)$/u

/**
 * A signature for `webhook-signature`: the same content, signed with the decoded key, in Base64. `undefined` if the
 * secret does not have the standard form. docs/reference/webhooks.md#standard-webhooks
 */
export const standardSign = (secret: string, parts: SignedParts): string | undefined => {
  const key = standardSecret.exec(secret)?.groups?.["key"]
  if (key === undefined) return undefined
  const signature = createHmac("sha256", Buffer.from(key, "base64"))
    .update(`${parts.deliveryId}.${parts.timestampSeconds}.`)
    .update(parts.body)
    .digest("base64")
  return `${signatureVersion},${signature}`
}

/** The headers of Standard Webhooks, if the current secret has the standard form. */
const standardHeaders = (
  parts: SignedParts,
  secret: string,
  previousSecret: string | undefined
): Record<string, string> => {
  const signature = standardSign(secret, parts)
  if (signature === undefined) return {}
  const previous = previousSecret === undefined ? undefined : standardSign(previousSecret, parts)
  return {
    "webhook-id": parts.deliveryId,
    "webhook-timestamp": String(parts.timestampSeconds),
    "webhook-signature": previous === undefined ? signature : `${signature} ${previous}`
  }
}

/**
 * The headers of a delivery request, in the documented order. `previousSecret` adds a second signature for 24 hours
 * after a rotation. docs/reference/webhooks.md#delivery-request
 */
export const deliveryHeaders = (
  serviceName: string,
  parts: SignedParts,
  secret: string,
  previousSecret?: string
): Record<string, string> => {
  const names = namesOf(serviceName)
  const headers: Record<string, string> = {
    "Content-Type": "application/json",
    "User-Agent": names.userAgent,
    [names.id]: parts.deliveryId,
    [names.timestamp]: String(parts.timestampSeconds),
    [names.signature]: sign(secret, parts)
  }
  if (previousSecret !== undefined) headers[names.previous] = sign(previousSecret, parts)
  return Object.assign(headers, standardHeaders(parts, secret, previousSecret))
}

const namesFor = (serviceName: string) => ({
  serviceName,
  userAgent: `${serviceName}-Webhook/1.0`,
  id: `X-${serviceName}-Webhook-Id`,
  timestamp: `X-${serviceName}-Webhook-Timestamp`,
  signature: `X-${serviceName}-Webhook-Signature`,
  previous: `X-${serviceName}-Webhook-Signature-Previous`
})

let cachedNames = namesFor("Service")

/** Returns the same string objects each time, because undici validates unknown header names character by character. */
const namesOf = (serviceName: string) => {
  if (cachedNames.serviceName !== serviceName) cachedNames = namesFor(serviceName)
  return cachedNames
}

/** A new signing secret: `whsec_` and 32 random bytes as Base64. */
export const generateSecret = (): string =>
  `${secretPrefix}${Base64.encode(SecureRandom.randomBytesUnsafe(secretBytes))}`
