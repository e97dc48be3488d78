import { Effect, Schema } from "effect"
import { Buffer } from "node:buffer"
import { createHmac, timingSafeEqual } from "node:crypto"
import type { InboundCallback } from "../../domain/Callback.ts"
import { secondsIn } from "../CallbackScheme.ts"
import type { CallbackScheme, Seal } from "../CallbackScheme.ts"
import { ask } from "../VendorCall.ts"
import type { Dialect } from "../VendorCall.ts"

const Secret = Schema.Struct({ key: Schema.String.check(Schema.isPattern(/^whsec_/u)) })

/** Replicate signs with the account's own secret, which the account asks for. vendors.md A5; ADR 0107. */
export const scheme = (dialect: Dialect, base: string): CallbackScheme => ({
  keys: {
    _tag: "Asked",
    ask: Effect.map(
      ask(dialect, { purpose: "ask", url: `${base}/webhooks/default/secret`, schema: Secret }),
      ({ key }) => [key]
    )
  },
  sealOf,
  isSigned: ({ message, signatures }, key) => {
    const secret = Buffer.from(key.slice("whsec_".length), "base64")
    const own = createHmac("sha256", secret).update(message).digest()
    return signatures.some((it) => it.length === own.length && timingSafeEqual(it, own))
  }
})

/** More signatures than a vendor that changes its secret has are not looked at. */
const signaturesMax = 8

const sealOf = ({ body, headers }: InboundCallback): Seal | undefined => {
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
