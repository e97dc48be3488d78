import { PgClient } from "@effect/sql-pg"
import { assert, describe, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { singleStores } from "../support/stores.ts"
import { accept, finish, newWallet, walletStores } from "../support/wallets.ts"

/** Rows that statements of this connection have read by reading a table from end to end. */
const rowsReadThrough = Effect.gen(function* () {
  const sql = yield* PgClient.PgClient
  yield* sql`SELECT pg_stat_force_next_flush()`
  yield* sql`SELECT pg_stat_clear_snapshot()`
  return yield* sql<{ table: string; rows: bigint }>`
    SELECT relname::text AS "table", seq_tup_read AS rows FROM pg_stat_user_tables
    WHERE seq_tup_read > 0 AND relname <> 'schema_migrations' ORDER BY relname`
})

for (const [name, database] of Object.entries(singleStores)) {
  describe(`plans (${name})`, () => {
    layer(Layer.provideMerge(walletStores, database), {
      timeout: "60 seconds",
      excludeTestServices: true
    })((it) => {
      it.effect(
        "a store that was planned for while empty is not read through once it is full",
        () =>
          Effect.gen(function* () {
            const sql = yield* PgClient.PgClient
            yield* sql`ANALYZE`.unprepared
            const pairs = (wallets: number, count: number) =>
              Effect.gen(function* () {
                const users = yield* Effect.forEach(Array.from({ length: wallets }), () =>
                  newWallet(10_000)
                )
                for (let n = 0; n < count; n += 1) {
                  const { outcome, taskId } = yield* accept(users[n % wallets]!, 1)
                  assert.strictEqual(outcome._tag, "Accepted")
                  // A tenth stays open.
                  if (n % 10 !== 0) yield* finish(taskId, 1)
                }
              })
            // Plans are kept from the sixth time on.
            yield* pairs(2, 20)
            const before = yield* rowsReadThrough
            yield* pairs(10, 200)
            assert.deepStrictEqual(yield* rowsReadThrough, before)
          })
      )
    })
  })
}
