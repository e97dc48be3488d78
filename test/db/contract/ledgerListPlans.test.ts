import { PgClient } from "@effect/sql-pg"
import { assert, describe, layer } from "@effect/vitest"
import { Effect, Layer, Option } from "effect"
import type { UserId } from "../../../src/domain/Ids.ts"
import { WalletStore } from "../../../src/wallet/WalletStore.ts"
import { countSoFar } from "../../support/statistics.ts"
import { singleStores } from "../../support/stores.ts"
import { newWallet, walletStores } from "../../support/wallets.ts"

const page = 21

/** Top-ups of one micro-credit each, for these users in turn, a few per page. */
const fill = Effect.fnUntraced(function* (users: ReadonlyArray<UserId>, count: number) {
  const sql = yield* PgClient.PgClient
  yield* Effect.gen(function* () {
    yield* sql`
      INSERT INTO wallet_entries (user_id, seq, kind, amount, settled_after, held_after, operation_id, note,
        created_at, state_after, threshold_after)
      SELECT w.user_id, w.entry_count + n, 'top_up', 1, w.settled + n, 0, w.user_id || ' ' || n,
        repeat('note ', 200), now(), 'NORMAL', 0
      FROM wallets w CROSS JOIN generate_series(1, ${count}::int) n
      WHERE w.user_id = ANY (${[...users]}::uuid[]) ORDER BY n`
    yield* sql`
      UPDATE wallets SET settled = settled + ${count}::int, entry_count = entry_count + ${count}::int
      WHERE user_id = ANY (${[...users]}::uuid[])`
  }).pipe(sql.withTransaction)
})

const read = Effect.gen(function* () {
  const sql = yield* PgClient.PgClient
  yield* countSoFar
  const [row] = yield* sql<{ rows: number }>`
    SELECT (seq_tup_read + coalesce(idx_tup_fetch, 0))::int AS rows
    FROM pg_stat_user_tables WHERE relname = 'wallet_entries'`
  return row!.rows
})

const planned = Effect.gen(function* () {
  const sql = yield* PgClient.PgClient
  const [row] = yield* sql<{ n: number }>`
    SELECT sum(custom_plans)::int AS n FROM pg_prepared_statements WHERE statement ~ 'wallet_entries c'`
  return row!.n
})

const analyze = Effect.flatMap(PgClient.PgClient, (sql) => sql`ANALYZE wallet_entries`.unprepared)

const shapes = {
  "statistics of an empty table": (users: ReadonlyArray<UserId>) =>
    Effect.andThen(analyze, fill(users, 6000)),
  "statistics of a full table": (users: ReadonlyArray<UserId>) =>
    Effect.andThen(fill(users, 6000), analyze)
}

/** Both are Postgres 18 with the same planner settings, so the embedded one only has to show that it has them. */
const shapesOf = { postgres: Object.keys(shapes), embedded: ["statistics of an empty table"] }

for (const [name, database] of Object.entries(singleStores)) {
  for (const [shape, make] of Object.entries(shapes)) {
    if (!shapesOf[name as keyof typeof shapesOf].includes(shape)) continue
    describe(`lists of the ledger over ${shape} (${name})`, () => {
      layer(Layer.provideMerge(walletStores, database), { timeout: "60 seconds" })((it) => {
        it.effect("read one page of rows, with a plan that is made once", () =>
          Effect.gen(function* () {
            const store = yield* WalletStore
            const [busy, quiet] = [yield* newWallet(1), yield* newWallet(1)]
            const search = (user: UserId, before: Option.Option<bigint>) =>
              store.search(user, { before, limit: page })
            const check = Effect.gen(function* () {
              const from = yield* read
              const first = yield* search(busy, Option.none())
              const next = yield* search(busy, Option.some(first.rows.at(-1)!.seq))
              const last = yield* search(busy, Option.some(2n))
              assert.isAtMost((yield* read) - from, 2 * page + 1)
              const seqs = [...first.rows, ...next.rows].map(({ seq }) => seq)
              assert.deepStrictEqual(
                seqs,
                seqs.map((_, n) => seqs[0]! - BigInt(n))
              )
              assert.deepStrictEqual([first.rows.length, next.rows.length], [page, page])
              assert.deepStrictEqual([first.end, last.rows.map(({ seq }) => seq)], [null, [1n]])
              assert.lengthOf((yield* search(quiet, Option.none())).rows, 1)
            })
            yield* make([busy, yield* newWallet(1)])
            // Postgres plans the first five executions for their values
            for (let times = 0; times < 6; times += 1) yield* check
            const before = yield* planned
            for (let times = 0; times < 6; times += 1) yield* check
            assert.strictEqual(yield* planned, before)
          })
        )
      })
    })
  }
}
