import type { Effect } from "effect"
import { Buffer } from "node:buffer"
import { createHmac } from "node:crypto"
import type { InboundCallback } from "../../domain/Callback.ts"
import { isSameBytes } from "../../domain/ConstantTime.ts"
import { secondsIn } from "../CallbackScheme.ts"
import type { CallbackScheme, CallbackSignature } from "../CallbackScheme.ts"
import type { VendorError } from "../VendorError.ts"

/** Whether a text has the form of a Standard Webhooks secret. */
export const isSecret = (text: string): boolean => /^whsec_[A-Za-z0-9+/=_-]{16,200}$/u.test(text)

/** Standard Webhooks signatures: HMAC-SHA256 with a secret that the account can read. */
export const standardScheme = (
  secrets: Effect.Effect<ReadonlyArray<string>, VendorError>
): CallbackScheme => ({
  keys: { _tag: "OfAccount", fetch: secrets },
  readSignature,
  verify: ({ message, signatures }, key) => {
    const secret = Buffer.from(key.slice("whsec_".length), "base64")
    const own = createHmac("sha256", secret).update(message).digest()
    return signatures.some((it) => isSameBytes(it, own))
  }
})

/** A vendor that rotates its secret sends two signatures. The limit bounds the work that a forged header can cause. */
const signaturesMax = 8

const readSignature = ({ body, headers }: InboundCallback): CallbackSignature | undefined => {
  const id = headers["webhook-id"]
  const timestamp = headers["webhook-timestamp"]
  const signedAtSeconds = secondsIn(timestamp)
  const signatures = (headers["webhook-signature"] ?? "")
    .split(" ")
    .filter((it) => /^v1,[A-Za-z0-9+/]{43}=$/u.test(it))
    .slice(0, signaturesMax)
    .map((it) => Buffer.from(it.slice("v1,".length), "base64"))
  if (id === undefined || signedAtSeconds === undefined || signatures.length === 0) return undefined
  return {
    signedAtSeconds,
    message: Buffer.concat([Buffer.from(`${id}.${timestamp}.`), body]),
    signatures
  }
}
