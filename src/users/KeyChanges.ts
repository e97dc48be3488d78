import { DateTime, Duration, Effect, Option } from "effect"
import type { ApiKeyId, UserId } from "../domain/Ids.ts"
import { reservationMillis } from "../domain/limits/Limits.ts"
import { invalid, problem } from "../domain/Problem.ts"
import type { FieldFault } from "../domain/Problem.ts"
import type { ApiKeys } from "./ApiKeys.ts"
import type { KeyDetails } from "./ApiKeyStore.ts"
import { generateKey, hashKey, previewOf } from "./KeyText.ts"
import type { UserStore } from "./UserStore.ts"

/** A key with its new secret. Only this response contains the secret. */
export interface RotatedKey {
  readonly key: string
  readonly details: KeyDetails
}

/** Changes to keys. `changed` removes a key from the caches of all processes. */
export const keyChanges = (
  store: UserStore["Service"],
  changed: (id: ApiKeyId) => void
): Pick<ApiKeys["Service"], "find" | "update" | "rotate" | "revoke"> => {
  const find = Effect.fnUntraced(function* (userId: Option.Option<UserId>, id: ApiKeyId) {
    const found = yield* store.findKey(userId, id, yield* DateTime.now)
    return yield* Effect.mapError(Effect.fromOption(found), () => noKey(id))
  })
  const done = Effect.fnUntraced(function* (id: ApiKeyId, reserved: Option.Option<boolean>) {
    if (Option.isNone(reserved)) return yield* noKey(id)
    changed(id)
    // A process with a reservation may admit calls until the reservation settles
    if (reserved.value) yield* Effect.sleep(reservationMillis)
  })
  return {
    find,
    update: Effect.fn("ApiKeys.update")(function* (userId, id, change) {
      const { userId: owner } = yield* find(userId, id)
      const updated = yield* store.updateKey(owner, id, change, yield* DateTime.now)
      if (Option.exists(updated, ({ reserved }) => reserved === null)) {
        return yield* invalid([resetAlone])
      }
      yield* done(
        id,
        Option.flatMapNullishOr(updated, ({ reserved }) => reserved)
      )
      return yield* find(userId, id)
    }),
    rotate: Effect.fn("ApiKeys.rotate")(function* (userId, id, grace) {
      const { isConsole, userId: owner } = yield* find(userId, id)
      if (isConsole) return yield* noText
      const key = generateKey()
      const rotation = {
        keyHash: hashKey(key),
        preview: previewOf(key),
        oldUntil: Duration.isZero(grace) ? null : DateTime.addDuration(yield* DateTime.now, grace)
      }
      yield* done(id, yield* store.rotateKey(owner, id, rotation))
      return { key, details: yield* find(userId, id) }
    }),
    revoke: Effect.fn("ApiKeys.revoke")(function* (userId, id) {
      yield* done(id, yield* store.revokeKey(userId, id, yield* DateTime.now))
    })
  }
}

const noKey = (id: ApiKeyId) => problem(2005, `There is no API key ${id}`)

/** The fault of a reset period without a spend limit. docs/reference/keys-and-limits.md#spend-limit */
export const resetAlone: FieldFault = {
  pointer: "#/reset",
  detail: "Expected only with a spend limit"
}

const noText = Effect.fail(
  problem(
    1004,
    "A console key cannot be rotated, because nobody has its text: revoke it, and its next use creates a new one"
  )
)
