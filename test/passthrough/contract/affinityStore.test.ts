import { PgClient } from "@effect/sql-pg"
import { assert } from "@effect/vitest"
import { Effect, Layer, Option } from "effect"
import type { UserId } from "../../../src/domain/Ids.ts"
import { AffinityStore } from "../../../src/passthrough/AffinityStore.ts"
import { liveLayer } from "../../support/liveLayer.ts"
import { describeStores } from "../../support/stores.ts"
import {
  callEnd,
  callKeyOf,
  callStart,
  newCaller,
  walletStores,
  writeCalls
} from "../../support/wallets.ts"

const accounts = ["openai:a", "openai:b"]

const bind = (
  user: UserId,
  candidate: string | undefined,
  among: ReadonlyArray<string> = accounts
) =>
  Effect.gen(function* () {
    const store = yield* AffinityStore
    const key = callKeyOf(user)
    const request = { user, key, provider: "openai", vendor: "openai", accounts: among } as const
    return Option.getOrUndefined(yield* store.bind({ ...request, candidate }))
  })

/** ADR 0134 */
describeStores("the affinity store", (database) => {
  liveLayer(Layer.mergeAll(walletStores, AffinityStore.layer).pipe(Layer.provideMerge(database)))(
    (it) => {
      it.effect("keeps a key at its first account, whichever one is proposed later", () =>
        Effect.gen(function* () {
          const user = yield* newCaller(1)
          assert.isUndefined(yield* bind(user, undefined))
          const bound = yield* Effect.all(
            Array.from({ length: 8 }, (_, n) => bind(user, accounts[n % 2])),
            { concurrency: "unbounded" }
          )
          assert.strictEqual(new Set(bound).size, 1)
          assert.strictEqual(yield* bind(user, undefined), bound[0])
          const more = ["openai:new", ...accounts]
          assert.strictEqual(yield* bind(user, "openai:new", more), bound[0])
          assert.strictEqual(yield* bind(yield* newCaller(1), "openai:new", more), "openai:new")
        })
      )

      it.effect("starts a key at the account of its last receipt", () =>
        Effect.gen(function* () {
          const user = yield* newCaller(10)
          const call = callStart(user, 1)
          yield* writeCalls({ starts: [call] })
          yield* writeCalls({ ends: [{ ...callEnd(call, 1), account: "openai:b" }] })
          assert.strictEqual(yield* bind(user, undefined), "openai:b")
          assert.strictEqual(yield* bind(user, "openai:a"), "openai:b")
        })
      )

      it.effect("reads no more than the latest 10,000 receipts of the user", () =>
        Effect.gen(function* () {
          const user = yield* newCaller(10)
          const call = callStart(user, 1)
          yield* writeCalls({ starts: [call] })
          yield* writeCalls({ ends: [{ ...callEnd(call, 1), account: "openai:b" }] })
          const sql = yield* PgClient.PgClient
          yield* sql`
          INSERT INTO calls (id, user_id, vendor, route, outcome, held, captured, sandbox, created_at, ended_at)
          SELECT ('ffffffff-ffff-7fff-bfff-' || lpad(to_hex(n), 12, '0'))::uuid, ${user}::uuid, 'openai',
            'POST /v1/embeddings', 'settled', 1, 1, false, c.created_at, c.ended_at
          FROM calls c, generate_series(1, 10000) n WHERE c.user_id = ${user}::uuid`
          assert.isUndefined(yield* bind(user, undefined))
          assert.strictEqual(yield* bind(user, "openai:a"), "openai:a")
        })
      )

      it.effect(
        "replaces an account that is gone with the next one, except for references to what it stored",
        () =>
          Effect.gen(function* () {
            const user = yield* newCaller(1)
            yield* bind(user, "openai:a")
            const rest = ["openai:b", "openai:c"]
            assert.strictEqual(yield* bind(user, undefined, rest), "openai:a")
            assert.strictEqual(yield* bind(user, "openai:c", rest), "openai:c")
            assert.strictEqual(yield* bind(user, "openai:b", rest), "openai:c")
          })
      )
    }
  )
})
