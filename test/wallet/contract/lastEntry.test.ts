import { PgClient } from "@effect/sql-pg"
import { assert, describe } from "@effect/vitest"
import { Effect, Layer, Option } from "effect"
import { randomUUID } from "node:crypto"
import type { UserId } from "../../../src/domain/Ids.ts"
import { WalletStore } from "../../../src/wallet/WalletStore.ts"
import { liveLayer } from "../../support/liveLayer.ts"
import { countSoFar } from "../../support/statistics.ts"
import { singleStores } from "../../support/stores.ts"
import {
  accept,
  breaches,
  callEnd,
  callStart,
  drawnCall,
  finish,
  newCaller,
  newWallet,
  reservation,
  walletStores,
  writeCalls,
  writeReservations
} from "../../support/wallets.ts"

/** The check that a wallet matches its ledger at its last entry. ADR 0061 */

/** How often the ledger has been searched by wallet and number, and read without an index. */
const searched = Effect.gen(function* () {
  const sql = yield* PgClient.PgClient
  yield* countSoFar
  const [row] = yield* sql`
    SELECT (SELECT idx_scan::int FROM pg_stat_user_indexes WHERE indexrelname = 'wallet_entries_pkey') AS searches,
      (SELECT seq_scan::int FROM pg_stat_user_tables WHERE relname = 'wallet_entries') AS scans`
  return row
})

describe.each(Object.entries(singleStores))(
  "the place of a wallet's last entry (%s)",
  (_, database) => {
    liveLayer(Layer.provideMerge(walletStores, database))((it) => {
      /** Changes a wallet in one transaction. */
      const refused = Effect.fnUntraced(function* (
        user: UserId,
        changes: string,
        ...before: ReadonlyArray<string>
      ) {
        const sql = yield* PgClient.PgClient
        const changing = Effect.gen(function* () {
          for (const statement of before) yield* sql.unsafe(statement)
          yield* sql.unsafe(`UPDATE wallets SET ${changes} WHERE user_id = '${user}'`)
        })
        const exit = yield* Effect.exit(sql.withTransaction(changing))
        return exit._tag === "Failure"
      })
      const entryOf = (user: UserId, seq: number) =>
        `(SELECT ctid::text FROM wallet_entries WHERE user_id = '${user}' AND seq = ${seq})`
      const nextEntry = (user: UserId, seq: number, settled: number, held: number) => `
      INSERT INTO wallet_entries (user_id, seq, kind, amount, settled_after, held_after, operation_id, state_after,
        threshold_after, created_at)
      VALUES ('${user}', ${seq}, 'adjustment', 1, ${settled}, ${held}, '${user} ${seq}', 'NORMAL', 0, now())`

      it.effect("lets creates, ends and calls be checked without a search of the ledger", () =>
        Effect.gen(function* () {
          const userId = yield* newCaller(100)
          const other = yield* newWallet(100)
          const drawing = reservation(userId, 0, 10)
          yield* writeReservations({ sizes: [drawing] })
          const before = yield* searched
          const tasks = yield* Effect.forEach([userId, other, other], (user) => accept(user, 5), {
            concurrency: "unbounded"
          })
          yield* Effect.forEach(tasks, ({ taskId }, n) => finish(taskId, [5, 0, 2][n]), {
            concurrency: "unbounded"
          })
          const start = callStart(userId, 2)
          yield* writeCalls({ starts: [start] })
          yield* writeCalls({ ends: [callEnd(start, 1)] })
          const drawn = [1, 2].map((cost) => drawnCall(callStart(userId, 2), cost))
          yield* writeReservations({ sizes: [{ ...drawing, hold: randomUUID() }], ended: drawn })
          assert.deepStrictEqual(yield* searched, before)
          assert.strictEqual(yield* breaches, 0)
        })
      )

      it.effect("is refused if the wallet differs from that entry", () =>
        Effect.gen(function* () {
          const [userId, twin] = [yield* newWallet(20), yield* newWallet(20)]
          for (const user of [userId, twin]) yield* accept(user, 5)
          const grown = [
            nextEntry(twin, 3, 20_000_001, 5_000_000),
            `UPDATE wallets SET settled = 20000001, entry_count = 3 WHERE user_id = '${twin}'`
          ]
          assert.isFalse(yield* refused(twin, "last_entry = NULL", ...grown))
          const own = `last_entry = ${entryOf(userId, 2)}`
          for (const changes of [
            `settled = settled + 1, ${own}`,
            `held = held - 1, ${own}`,
            `entry_count = 3, ${own}`,
            // The previous entry, with its figures
            `held = 0, last_entry = ${entryOf(userId, 1)}`,
            // An entry of another wallet whose number and balances match
            `settled = 20000001, entry_count = 3, last_entry = ${entryOf(twin, 3)}`
          ]) {
            assert.isTrue(yield* refused(userId, changes), changes)
          }
          assert.strictEqual(yield* breaches, 0)
        })
      )

      it.effect("is refused for an entry that was rolled back", () =>
        Effect.gen(function* () {
          const sql = yield* PgClient.PgClient
          const userId = yield* newWallet(20)
          const changes = Effect.gen(function* () {
            yield* sql`SAVEPOINT entry`.unprepared
            const [row] = yield* sql.unsafe<{ place: string }>(
              `${nextEntry(userId, 2, 20_000_001, 0)} RETURNING ctid::text AS place`
            )
            yield* sql`ROLLBACK TO entry`.unprepared
            yield* sql.unsafe(`UPDATE wallets SET settled = 20000001, entry_count = 2, last_entry = '${row!.place}'
            WHERE user_id = '${userId}'`)
          })
          assert.strictEqual((yield* Effect.exit(sql.withTransaction(changes)))._tag, "Failure")
          assert.strictEqual(yield* breaches, 0)
        })
      )

      it.effect("is not needed: without it, or with an old one, the entry is searched", () =>
        Effect.gen(function* () {
          const userId = yield* newWallet(20)
          yield* accept(userId, 5)
          let seq = 2
          for (const place of ["last_entry", "NULL", "'(4000000,7)'", entryOf(userId, 1)]) {
            seq += 1
            const settled = 20_000_000 + seq
            const changes = `settled = ${settled}, entry_count = ${seq}, last_entry = ${place}`
            const entry = nextEntry(userId, seq, settled, 5_000_000)
            assert.isFalse(yield* refused(userId, changes, entry), place)
            assert.isTrue(yield* refused(userId, `${changes}, held = held + 1`), place)
          }
          yield* accept(userId, 5)
        })
      )

      it.effect("is read with its wallet, wherever it is", () =>
        Effect.gen(function* () {
          const sql = yield* PgClient.PgClient
          const userId = yield* newWallet(20)
          for (const place of ["(0,1)", "(128,255)", "(4000000,7)", "(4294967294,65535)"]) {
            yield* sql`UPDATE wallets SET last_entry = ${place} WHERE user_id = ${userId}`
            const row = yield* (yield* WalletStore).find(userId)
            assert.isTrue(Option.isSome(row), place)
          }
        })
      )
    })
  }
)
