import { assert, it } from "@effect/vitest"
import { DateTime, Effect, Layer, Option } from "effect"
import { makeApiKeyId } from "../../../src/domain/Ids.ts"
import { AdmissionStore } from "../../../src/users/AdmissionStore.ts"
import { UserStore } from "../../../src/users/UserStore.ts"
import { describeStores } from "../../support/stores.ts"
import { newWallet, walletStores } from "../../support/wallets.ts"

const now = DateTime.makeUnsafe("2026-03-01T12:00:00Z")
const later = (seconds: number) => DateTime.add(now, { seconds })
const anHourAhead = later(3600)

describeStores("a process whose clock was an hour fast for a moment", (database) => {
  const Live = Layer.mergeAll(AdmissionStore.layer, walletStores).pipe(Layer.provideMerge(database))

  it.effect("empties no key's bucket for longer than its refill time", () =>
    Effect.gen(function* () {
      const { admit } = yield* AdmissionStore
      const keyHash = new Uint8Array([1])
      yield* (yield* UserStore).createKey({
        id: makeApiKeyId(0),
        userId: yield* newWallet(0),
        keyHash,
        preview: "sk-...abcd",
        name: "key",
        scopes: ["inference"],
        expiresAt: null,
        now
      })
      const isAdmitted = (at: DateTime.Utc) =>
        Effect.map(
          admit({ keyHash, perMinute: 2, userPerMinute: 0, now: at, taskId: Option.none() }),
          Option.flatMap(({ rate }) => Option.map(rate, ({ admitted }) => admitted))
        )
      for (const at of [anHourAhead, anHourAhead]) {
        assert.deepStrictEqual(yield* isAdmitted(at), Option.some(true))
      }
      assert.deepStrictEqual(yield* isAdmitted(now), Option.some(false), "it is empty")
      assert.deepStrictEqual(yield* isAdmitted(later(15)), Option.some(false))
      assert.deepStrictEqual(yield* isAdmitted(later(31)), Option.some(true))
    }).pipe(Effect.provide(Live))
  )
})
