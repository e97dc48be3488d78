import { assert } from "@effect/vitest"
import { DateTime, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import type { UserId } from "../../../src/domain/Ids.ts"
import { WalletStore } from "../../../src/wallet/WalletStore.ts"
import { liveLayer } from "../../support/liveLayer.ts"
import { describeStores } from "../../support/stores.ts"
import { whileLocked } from "../../support/upgrade.ts"
import {
  accept,
  breachesOf,
  callKeyOf,
  credits,
  newCaller,
  walletOf,
  walletStores
} from "../../support/wallets.ts"

/** What changes a wallet, its limits or its sums takes turns. docs/reference/wallet.md#invariants */
const statements: ReadonlyArray<readonly [string, (user: UserId) => string]> = [
  ["a rebuild of usage", (user) => `usage_rebuild('${user}', current_date, now())`],
  [
    "a change of a key",
    (user) =>
      `api_key_update('${user}', '${callKeyOf(user)}', '{name}', 'n', null, null, null, null, null, null, now())`
  ],
  [
    "a change of a user",
    (user) => `user_update('${user}', '{name}', null, 'n', null, null, null, null, null, now())`
  ],
  [
    "the mark of a restored store",
    () => "store_mark_restored('p', now(), false, 'proc_a', 1, null)"
  ],
  ["the deletion of a user", (user) => `user_delete('${user}', now())`]
]

describeStores("a wallet", (database, kind) => {
  liveLayer(Layer.provideMerge(walletStores, database))((it) => {
    it.effect("gets every top-up of many that come at once", () =>
      Effect.gen(function* () {
        const wallets = yield* WalletStore
        const userId = yield* newCaller(10)
        const added = yield* Effect.forEach(
          Array.from({ length: 8 }, (_, n) => `top_up:${userId}:${n}`),
          (operationId) =>
            Effect.gen(function* () {
              const now = yield* DateTime.now
              const change = { kind: "top_up", amount: credits(1), note: null } as const
              return yield* wallets.add({ ...change, userId, operationId, traceId: "", now })
            }),
          { concurrency: "unbounded" }
        )
        assert.isTrue(added.every(({ _tag }) => _tag === "Added"))
        assert.deepInclude(yield* walletOf(userId), { settled: credits(18) })
        assert.strictEqual(yield* breachesOf(userId), 0)
      })
    )

    // The embedded store has one connection
    if (kind === "postgres") {
      it.effect.each(statements)("is locked until the end of %s", ([, statementOf]) =>
        Effect.gen(function* () {
          const sql = yield* SqlClient.SqlClient
          const userId = yield* newCaller(10)
          yield* accept(userId, 1)
          const free = yield* whileLocked(
            sql,
            `SELECT FROM ${statementOf(userId)}`,
            sql`SELECT FROM wallets WHERE user_id = ${userId} FOR NO KEY UPDATE SKIP LOCKED`
          )
          assert.isEmpty(free)
        })
      )
    }
  })
})
