import { Schema } from "effect"
import { passkeyNameCharactersMax } from "./limits/SignInLimits.ts"

/** Bytes in base64url, as the JSON of browsers has them (WebAuthn, `PublicKeyCredential.toJSON`). */
const bytes = (charactersMax: number) =>
  Schema.String.check(
    Schema.isPattern(new RegExp(`^[\\w-]{1,${charactersMax}}$`, "u"), {
      expected: `at most ${charactersMax} characters of base64url`
    })
  )

const credential = {
  id: bytes(1364),
  rawId: bytes(1364),
  type: Schema.Literal("public-key"),
  authenticatorAttachment: Schema.optionalKey(Schema.Literals(["platform", "cross-platform"])),
  clientExtensionResults: Schema.optionalKey(Schema.Record(Schema.String, Schema.Unknown))
}

/** A browser's response to a sign-in challenge. docs/reference/sessions.md#passkeys */
export const PasskeyAssertion = Schema.Struct({
  ...credential,
  response: Schema.Struct({
    clientDataJSON: bytes(4096),
    authenticatorData: bytes(2048),
    signature: bytes(2048),
    userHandle: Schema.optionalKey(Schema.NullOr(bytes(88)))
  })
}).annotate({ identifier: "PasskeyAssertion" })
export type PasskeyAssertion = typeof PasskeyAssertion.Type

/** A new passkey, as created by a browser. docs/reference/sessions.md#passkeys */
export const PasskeyAttestation = Schema.Struct({
  ...credential,
  response: Schema.Struct({
    clientDataJSON: bytes(4096),
    attestationObject: bytes(10_000),
    transports: Schema.optionalKey(Schema.Array(Schema.String)),
    publicKeyAlgorithm: Schema.optionalKey(Schema.Int),
    publicKey: Schema.optionalKey(bytes(4096)),
    authenticatorData: Schema.optionalKey(bytes(4096))
  })
}).annotate({ identifier: "PasskeyAttestation" })
export type PasskeyAttestation = typeof PasskeyAttestation.Type

export const PasskeyName = Schema.String.check(
  Schema.isNonEmpty(),
  Schema.isMaxCodePoints(passkeyNameCharactersMax)
)
