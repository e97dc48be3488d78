import { Option, Schema } from "effect"
import { Buffer } from "node:buffer"
import { createHash, createPublicKey, verify } from "node:crypto"
import type { InboundCallback } from "../../domain/Callback.ts"
import { secondsIn } from "../CallbackScheme.ts"
import type { CallbackScheme, CallbackSignature } from "../CallbackScheme.ts"

/** The keys with which fal signs the callbacks of all its customers. */
const published = "https://rest.fal.ai/.well-known/jwks.json"

/** Ed25519 over headers and the hash of the body. docs/reference/vendors.md#fal-callbacks */
export const scheme = (jwksUrl: string = published): CallbackScheme => ({
  keys: { _tag: "Published", url: jwksUrl, parse },
  readSignature,
  verify: ({ message, signatures }, key) => {
    const publicKey = keyOf(key)
    return (
      publicKey !== undefined &&
      signatures.some((signature) => verify(null, message, publicKey, signature))
    )
  }
})

const readSignature = ({ body, headers }: InboundCallback): CallbackSignature | undefined => {
  const requestId = headers["x-fal-webhook-request-id"]
  const userId = headers["x-fal-webhook-user-id"]
  const timestamp = headers["x-fal-webhook-timestamp"]
  const signature = headers["x-fal-webhook-signature"] ?? ""
  const signedAtSeconds = secondsIn(timestamp)
  if (requestId === undefined || userId === undefined || signedAtSeconds === undefined) {
    return undefined
  }
  if (!/^[0-9a-f]{128}$/iu.test(signature)) return undefined
  const hash = createHash("sha256").update(body).digest("hex")
  return {
    signedAtSeconds,
    message: Buffer.from([requestId, userId, timestamp, hash].join("\n")),
    signatures: [Buffer.from(signature, "hex")]
  }
}

const Jwks = Schema.fromJsonString(Schema.Struct({ keys: Schema.Array(Schema.Unknown) }))
const decodeJwks = Schema.decodeUnknownOption(Jwks)
const Jwk = Schema.Struct({
  kty: Schema.Literal("OKP"),
  crv: Schema.Literal("Ed25519"),
  x: Schema.String.check(Schema.isPattern(/^[\w-]{43}$/u))
})
const decodeJwk = Schema.decodeUnknownOption(Jwk)

/** The Ed25519 keys of the set; other keys are ignored. */
const parse = (bytes: Uint8Array): ReadonlyArray<string> =>
  Option.match(decodeJwks(Buffer.from(bytes).toString("utf8")), {
    onNone: () => [],
    onSome: ({ keys }) => keys.flatMap((key) => Option.toArray(decodeJwk(key))).map(({ x }) => x)
  })

/** `undefined` when the 32 bytes are not a point of the curve. */
const keyOf = (x: string) => {
  try {
    return createPublicKey({ key: { kty: "OKP", crv: "Ed25519", x }, format: "jwk" })
  } catch {
    return undefined
  }
}
