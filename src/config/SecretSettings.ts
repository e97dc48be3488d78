import { Effect, Option, Redacted, Schema } from "effect"
import type { Array as Arr } from "effect"
import { every, fault, readSecret } from "./Setting.ts"

const masterKeyRemedy =
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

const tokenRemedy = `set a secret of at least ${adminTokenCharactersMin} characters of ASCII without spaces`

type Given = Option.Option<Redacted.Redacted>

const checkToken = (name: string) => (given: Given) => {
  const problem = Option.flatMap(given, (token) => problemOfToken(Redacted.value(token)))
  return Option.isSome(problem) ? fault(name, problem.value, tokenRemedy) : Effect.void
}

const problemOfToken = (token: string): Option.Option<string> => {
  if (!isSendable(token)) return Option.some("has characters that a header cannot carry")
  return isAdminToken(token) ? Option.none() : Option.some("is too short")
}

const checkMasterKey = (given: Given) =>
  Option.exists(given, (key) => !isMasterKey(Redacted.value(key)))
    ? fault("MASTER_KEY", "is not 32 bytes of Base64", masterKeyRemedy)
    : Effect.void

/**
 * The operator token and the master key are generated with the embedded store and required with an external one.
 * docs/reference/configuration.md#secrets
 */
export const secretSettings = (hasPostgres: boolean) => {
  const required = (name: string, remedy: string) => (given: Given) =>
    hasPostgres && Option.isNone(given)
      ? fault(name, "is required with DATABASE_URL", remedy)
      : Effect.void
  return every({
    adminToken: readSecret("ADMIN_TOKEN", tokenRemedy).pipe(
      Effect.tap(required("ADMIN_TOKEN", tokenRemedy)),
      Effect.tap(checkToken("ADMIN_TOKEN"))
    ),
    masterKey: readSecret("MASTER_KEY", masterKeyRemedy).pipe(
      Effect.tap(required("MASTER_KEY", masterKeyRemedy)),
      Effect.tap(checkMasterKey)
    ),
    metricsToken: Effect.tap(readSecret("METRICS_TOKEN", tokenRemedy), checkToken("METRICS_TOKEN"))
  })
}
