import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Layer } from "effect"
import { TestClock } from "effect/testing"
import { ApiKeyId, UserId } from "../../../src/domain/Ids.ts"
import { reservationMillis } from "../../../src/domain/limits/Limits.ts"
import { keyChanges } from "../../../src/users/KeyChanges.ts"
import { UserStore } from "../../../src/users/UserStore.ts"

const id = ApiKeyId.make("key_a")
const user = UserId.make("019a0c5e-7f3a-7a00-9e2b-4f6a8c0d1e2f")

/** R-LIMIT-19. A process that missed the message draws on its reservation until this time is over. */
describe("the revocation of a key", () => {
  for (const [reserved, millis] of [
    [true, reservationMillis],
    [false, 0]
  ] as const) {
    it.effect(
      `responds after ${millis} ms, after it has told the caches: reserved ${reserved}`,
      () =>
        Effect.gen(function* () {
          const changed: Array<ApiKeyId> = []
          const { revoke } = keyChanges(yield* UserStore, (key) => void changed.push(key))
          const response = yield* Effect.forkChild(revoke(user, id))
          yield* TestClock.adjust(millis - 1)
          assert.deepStrictEqual(changed, [id])
          assert.strictEqual(response.pollUnsafe() === undefined, reserved)
          yield* TestClock.adjust(1)
          yield* Fiber.join(response)
        }).pipe(
          Effect.provide(Layer.mock(UserStore, { revokeKey: () => Effect.succeedSome(reserved) }))
        )
    )
  }
})
