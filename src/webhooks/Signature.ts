import { SecureRandom } from "effect/crypto"
import { Base64Url } from "effect/encoding"
import { createHmac } from "node:crypto"

/** Prefix of the hex digits, so that the algorithm can change later. docs/reference/requirements.md#versioning */
const signatureVersion = "v1"

/** Prefix of every signing secret. */
const secretPrefix = "whsec_"

const secretBytes = 32

/** The parts of a delivery request that are signed. docs/reference/webhooks.md#delivery-request */
export interface SignedParts {
  /** `whd_…`, the same on every attempt. */
  readonly deliveryId: string
  /** Unix time of the signing, new on every attempt. */
  readonly timestampSeconds: number
  /** The signed bytes are the bytes on the wire. */
  readonly body: Uint8Array
}

/**
 * Value of the signature header, `v1=<hex>`: HMAC-SHA256 of `<delivery_id>.<timestamp>.<raw_body>`. The
 * key is the whole secret string as UTF-8, with `whsec_`. docs/reference/webhooks.md#signature
 *
 * Synchronous, because it runs once an attempt on the hot path.
 */
export const sign = (secret: string, parts: SignedParts): string => {
  const hex = createHmac("sha256", secret)
    .update(`${parts.deliveryId}.${parts.timestampSeconds}.`)
    .update(parts.body)
    .digest("hex")
  return `${signatureVersion}=${hex}`
}

/**
 * Headers of a delivery request, in the documented order. `previousSecret` adds a second signature, for
 * 24 hours after a rotation. docs/reference/webhooks.md#delivery-request
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
  return headers
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

/** Returns the same strings each time: undici validates a string that it has not seen letter by letter. */
const namesOf = (serviceName: string) => {
  if (cachedNames.serviceName !== serviceName) cachedNames = namesFor(serviceName)
  return cachedNames
}

/** A new signing secret: `whsec_` and 32 random bytes as Base64url. */
export const generateSecret = (): string =>
  `${secretPrefix}${Base64Url.encode(SecureRandom.randomBytesUnsafe(secretBytes))}`
