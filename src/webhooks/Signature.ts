import { SecureRandom } from "effect/crypto"
import { Base64Url } from "effect/encoding"
import { createHmac } from "node:crypto"

/** What stands before the hex digits, so that the algorithm can change later. Spec, Versioning. */
const signatureVersion = "v1"

/** Prefix of every signing secret. Spec, Webhook endpoint. */
const secretPrefix = "whsec_"

const secretBytes = 32

/** What a delivery request says about itself in its headers. Spec, Delivery request. */
export interface SignedParts {
  /** `whd_…`, the same on every attempt. */
  readonly deliveryId: string
  /** Unix time of the signing, recomputed on every attempt. Spec, Signature 6. */
  readonly timestampSeconds: number
  /** Sent as it is: the bytes that are signed are the bytes on the wire. */
  readonly body: Uint8Array
}

/**
 * Value of the signature header, `v1=<hex>`: HMAC-SHA256 of `<delivery_id>.<timestamp>.<raw_body>`.
 * The key is the whole secret string, `whsec_` included, as UTF-8. Spec, Signature; contract 8.
 *
 * Synchronous, because it runs once per attempt on the hot path.
 */
export const sign = (secret: string, parts: SignedParts): string => {
  const hex = createHmac("sha256", secret)
    .update(`${parts.deliveryId}.${parts.timestampSeconds}.`)
    .update(parts.body)
    .digest("hex")
  return `${signatureVersion}=${hex}`
}

/**
 * Headers of a delivery request, in the spec's order. The neutral name `Service` is the default of
 * `SERVICE_NAME` (contract 2). With `previousSecret` the old secret signs beside the new one, for 24
 * hours after a rotation (contract 3). Spec, Delivery request.
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

let namesLately = namesFor("Service")

/** The same strings each time: undici looks at a name that it has not met letter by letter. */
const namesOf = (serviceName: string) => {
  if (namesLately.serviceName !== serviceName) namesLately = namesFor(serviceName)
  return namesLately
}

/** A new signing secret: `whsec_` and 32 random bytes as base64url. Spec, Webhook endpoint. */
export const generateSecret = (): string =>
  `${secretPrefix}${Base64Url.encode(SecureRandom.randomBytesUnsafe(secretBytes))}`
