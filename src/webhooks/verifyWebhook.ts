/** Equals `signatureSkewSecondsMax`; a test compares them. This file imports nothing, so that receivers can copy it. */
const signatureSkewSeconds = 300

/** The headers of a received request: a `Headers` object, or a plain object such as Node's `request.headers`. */
export type ReceivedHeaders =
  | { readonly get: (name: string) => string | null }
  | Readonly<Record<string, string | ReadonlyArray<string> | undefined>>

/** Why a delivery was refused. */
export type VerifyFailure =
  /** One of the id, timestamp and signature headers is missing, empty or repeated. */
  | "missing_header"
  /** The timestamp header is not a whole number of seconds. */
  | "malformed_timestamp"
  /** Signed more than 300 seconds before or after `now`. */
  | "timestamp_outside_tolerance"
  /** The signature header does not start with `v1=`. */
  | "unsupported_version"
  /** The body, a header or the secret differs from what was signed. */
  | "signature_mismatch"

export type VerifyResult =
  | { readonly valid: true }
  | { readonly valid: false; readonly reason: VerifyFailure }

export interface VerifyOptions {
  readonly headers: ReceivedHeaders
  /** The raw body exactly as received, never a re-serialized object. */
  readonly body: Uint8Array | ArrayBuffer | string
  /** The endpoint's whole secret string, including `whsec_`. */
  readonly secret: string
  /** The current time. Default: the system clock. */
  readonly now?: Date
  /** The name in the headers `X-{serviceName}-Webhook-…`. Default `Service`. */
  readonly serviceName?: string
}

/**
 * For receivers: verifies that a delivery comes from the service, is unchanged and is recent.
 * docs/reference/webhooks.md#signature
 *
 * Needs only Web Crypto, so it runs on Node, on Deno and in browsers; Web Crypto's `verify` compares in constant time.
 * For 24 hours after a rotation the service also signs with the previous secret, so a receiver that still has the old
 * secret accepts the delivery. Receivers must still deduplicate by the id header. The promise never rejects.
 */
export const verifyWebhook = async (options: VerifyOptions): Promise<VerifyResult> => {
  const prefix = `x-${(options.serviceName ?? "Service").toLowerCase()}-webhook-`
  const deliveryId = header(options.headers, `${prefix}id`)
  const timestamp = header(options.headers, `${prefix}timestamp`)
  const signature = header(options.headers, `${prefix}signature`)
  if (deliveryId === undefined || timestamp === undefined || signature === undefined) {
    return refused("missing_header")
  }
  if (!/^(?:0|[1-9]\d{0,14})$/u.test(timestamp)) return refused("malformed_timestamp")
  const nowSeconds = (options.now ?? new Date()).getTime() / 1000
  const skewSeconds = Math.abs(nowSeconds - Number(timestamp))
  // Written this way, the check also refuses a `now` that is an invalid date
  if (!(skewSeconds <= signatureSkewSeconds)) return refused("timestamp_outside_tolerance")
  if (!signature.startsWith("v1=")) return refused("unsupported_version")

  const previous = header(options.headers, `${prefix}signature-previous`)
  const key = await hmacKey(options.secret)
  if (key === undefined) return refused("signature_mismatch")
  const signed = concat(utf8.encode(`${deliveryId}.${timestamp}.`), bytesOf(options.body))
  for (const candidate of previous === undefined ? [signature] : [signature, previous]) {
    const mac = macOf(candidate)
    // oxlint-disable-next-line no-await-in-loop -- at most two, and the first nearly always decides
    if (mac !== undefined && (await crypto.subtle.verify("HMAC", key, mac, signed))) {
      return { valid: true }
    }
  }
  return refused("signature_mismatch")
}

const utf8 = new TextEncoder()

const refused = (reason: VerifyFailure): VerifyResult => ({ valid: false, reason })

/** Reads a header by its lower-case name. A repeated or empty header counts as missing. */
const header = (headers: ReceivedHeaders, name: string): string | undefined => {
  const value = isHeaders(headers) ? headers.get(name) : fieldOf(headers, name)
  return typeof value === "string" && value !== "" ? value : undefined
}

const isHeaders = (
  headers: ReceivedHeaders
): headers is { readonly get: (name: string) => string | null } => typeof headers.get === "function"

const fieldOf = (
  headers: Readonly<Record<string, string | ReadonlyArray<string> | undefined>>,
  name: string
): string | undefined => {
  const values = Object.entries(headers)
    .filter(([key]) => key.toLowerCase() === name)
    .flatMap(([, value]) => value ?? [])
  return values.length === 1 ? values[0] : undefined
}

/** `undefined` for an empty secret, which Web Crypto does not accept as a key. */
const hmacKey = async (secret: string) =>
  secret === ""
    ? undefined
    : crypto.subtle.importKey(
        "raw",
        utf8.encode(secret),
        { name: "HMAC", hash: "SHA-256" },
        false,
        ["verify"]
      )

/** The 32 bytes after `v1=`. `undefined` for any form that the service does not send. */
const macOf = (signature: string): Uint8Array<ArrayBuffer> | undefined => {
  const hex = /^v1=([0-9a-f]{64})$/u.exec(signature)?.[1]
  if (hex === undefined) return undefined
  return Uint8Array.from({ length: 32 }, (_, index) =>
    Number.parseInt(hex.slice(index * 2, index * 2 + 2), 16)
  )
}

const bytesOf = (body: Uint8Array | ArrayBuffer | string): Uint8Array => {
  if (typeof body === "string") return utf8.encode(body)
  return body instanceof Uint8Array ? body : new Uint8Array(body)
}

const concat = (head: Uint8Array, tail: Uint8Array): Uint8Array<ArrayBuffer> => {
  const joined = new Uint8Array(head.length + tail.length)
  joined.set(head)
  joined.set(tail, head.length)
  return joined
}
