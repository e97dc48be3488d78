import { Effect, Option } from "effect"
import { randomUUID } from "node:crypto"
import * as Credits from "../../src/domain/Credits.ts"
import type { UserId } from "../../src/domain/Ids.ts"
import type { Scope } from "../../src/domain/Scope.ts"
import { ApiKeys } from "../../src/users/ApiKeys.ts"
import { Users } from "../../src/users/Users.ts"
import { Wallet } from "../../src/wallet/Wallet.ts"

/** A key of a user that does not expire. */
export const makeKey = Effect.fnUntraced(function* (
  userId: UserId,
  scopes: ReadonlyArray<Scope> = ["inference", "manage"]
) {
  const key = { userId, name: "key", scopes, expiresAt: Option.none() }
  return yield* (yield* ApiKeys).create(key)
})

/** A user with credits and a key. */
export const makeCaller = Effect.fnUntraced(function* (
  credits: number,
  email = `${randomUUID()}@example.com`,
  scopes?: ReadonlyArray<Scope>
) {
  const { id: userId } = yield* (yield* Users).create({
    email,
    name: Option.none(),
    password: Option.none()
  })
  if (credits > 0) {
    yield* (yield* Wallet).topUp({
      userId,
      amount: Credits.make(BigInt(Math.round(credits * 1e6))),
      operationId: `first:${userId}`,
      note: Option.none(),
      traceId: "0".repeat(32)
    })
  }
  const { key, row } = yield* makeKey(userId, scopes)
  return { userId, key, keyId: row.id }
})
