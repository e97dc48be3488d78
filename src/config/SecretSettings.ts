import { Effect, Option, Redacted, Schema } from "effect"
import type { Array as Arr } from "effect"
import { fault } from "./Setting.ts"

export const masterKeyRemedy =
  "set 32 bytes as Base64, such as the output of: openssl rand -base64 32; several keys are separated by commas"

const adminTokenCharactersMin = 16

/** Whether an `Authorization` header can carry the token. */
const isSendable = (token: string): boolean => /^[\x21-\x7e]*$/u.test(token)

export const isAdminToken = (token: string): boolean =>
  token.length >= adminTokenCharactersMin && isSendable(token)

/** The keys of `MASTER_KEY`. The first one encrypts, and all of them can decrypt. ADR 0222 */
export const masterKeysOf = (text: string): Arr.NonEmptyReadonlyArray<string> => {
  const [first = "", ...others] = text.split(",").map((key) => key.trim())
  return [first, ...others]
}

/** Whether the text is one or more 32-byte keys in Base64. */
export const isMasterKey = (text: string): boolean =>
  masterKeysOf(text).every((base64) =>
    Option.exists(decodeBase64(base64), (bytes) => bytes.length === 32)
  )
const decodeBase64 = Schema.decodeUnknownOption(Schema.Uint8ArrayFromBase64)

/**
 * Both secrets are generated with the embedded store and required with an external one.
 * docs/reference/configuration.md#secrets
 */
export const checkSecrets = (
  required: boolean,
  {
    adminToken,
    masterKey,
    metricsToken
  }: Readonly<Record<"adminToken" | "masterKey" | "metricsToken", Option.Option<Redacted.Redacted>>>
) =>
  Effect.gen(function* () {
    const missing = "is required with DATABASE_URL"
    const tokenRemedy = `set a secret of at least ${adminTokenCharactersMin} characters of ASCII without spaces`
    if (required && Option.isNone(adminToken)) {
      return yield* fault("ADMIN_TOKEN", missing, tokenRemedy)
    }
    for (const [name, given] of [
      ["ADMIN_TOKEN", adminToken],
      ["METRICS_TOKEN", metricsToken]
    ] as const) {
      if (Option.exists(given, (token) => !isSendable(Redacted.value(token)))) {
        return yield* fault(name, "has characters that a header cannot carry", tokenRemedy)
      }
      if (Option.exists(given, (token) => !isAdminToken(Redacted.value(token)))) {
        return yield* fault(name, "is too short", tokenRemedy)
      }
    }
    if (required && Option.isNone(masterKey)) {
      return yield* fault("MASTER_KEY", missing, masterKeyRemedy)
    }
    if (Option.exists(masterKey, (key) => !isMasterKey(Redacted.value(key)))) {
      return yield* fault("MASTER_KEY", "is not 32 bytes of Base64", masterKeyRemedy)
    }
  })
