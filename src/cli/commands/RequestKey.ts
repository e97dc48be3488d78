import { Option } from "effect"
import { Flag } from "effect/cli"
import { SecureRandom } from "effect/crypto"
import { idempotencyKeyCharactersMax } from "../../domain/limits/Limits.ts"

/** Whether the text can be sent in an HTTP header and has no leading or trailing spaces. */
const isKey = (text: string): boolean =>
  /^(?! )[\x20-\x7e]+(?<! )$/u.test(text) && text.length <= idempotencyKeyCharactersMax

/**
 * A flag with the idempotency key of a paid request: a repetition with the same key has no second effect.
 * docs/reference/tasks.md#idempotency
 */
export const requestKey = (flag: string, description: string) =>
  Flag.String(flag).pipe(
    Flag.withDescription(`${description} Default: a new one`),
    Flag.filter(isKey, () => `Expected 1 to ${idempotencyKeyCharactersMax} characters of ASCII`),
    Flag.optional,
    Flag.map(Option.getOrElse(() => `cli-${SecureRandom.uuidV4Unsafe()}`))
  )
