import { PgClient } from "@effect/sql-pg"
import { assert, describe } from "@effect/vitest"
import { Effect, Layer, Option } from "effect"
import { makeUserId } from "../../../src/domain/Ids.ts"
import { listScanRowsMax } from "../../../src/domain/limits/Limits.ts"
import type { UserFilter } from "../../../src/users/UserListStore.ts"
import { UserStore } from "../../../src/users/UserStore.ts"
import { liveLayer } from "../../support/liveLayer.ts"
import { countSoFar } from "../../support/statistics.ts"
import { singleStores } from "../../support/stores.ts"

const begin = Date.parse("2026-11-01T00:00:00Z")
const count = 12_000
const page = 21

/** User n of `count`, one per second; every 4000th is disabled. */
const makeUsers = Effect.gen(function* () {
  const sql = yield* PgClient.PgClient
  const ids = Array.from({ length: count }, (_, n) => makeUserId(begin + n * 1000))
  yield* sql`
    WITH made AS (
      INSERT INTO users (id, email, created_at, disabled_at)
      SELECT x.id, 'user-' || i || '@example.com', ${new Date(begin)}::timestamptz,
        CASE WHEN i % 4000 = 0 THEN ${new Date(begin)}::timestamptz END
      FROM unnest(${ids}::uuid[]) WITH ORDINALITY AS x (id, i) RETURNING id
    ) INSERT INTO wallets (user_id) SELECT id FROM made`
  yield* sql`ANALYZE users, wallets`
  return ids
})

/** Rows of users and wallets that this connection has read. */
const readSoFar = Effect.gen(function* () {
  const sql = yield* PgClient.PgClient
  yield* countSoFar
  const [row] = yield* sql<{ rows: number }>`
    SELECT sum(seq_tup_read + coalesce(idx_tup_fetch, 0))::int AS rows
    FROM pg_stat_user_tables WHERE relname IN ('users', 'wallets')`
  return row!.rows
})

/** docs/reference/keys-and-limits.md#users, ADR 0165 */
for (const [name, database] of Object.entries(singleStores)) {
  describe(`the list of users (${name})`, () => {
    liveLayer(
      Layer.provideMerge(UserStore.layer, database),
      "120 seconds"
    )((it) => {
      it.effect("reads as many rows as a page needs, and a bounded number if few match", () =>
        Effect.gen(function* () {
          const store = yield* UserStore
          const ids = yield* makeUsers
          const list = Effect.fnUntraced(function* (filter: UserFilter, before?: string) {
            const rows = yield* readSoFar
            const found = yield* store.list({
              ...filter,
              before: Option.fromUndefinedOr(before),
              limit: page,
              month: "2026-11-01"
            })
            return { ...found, read: (yield* readSoFar) - rows }
          })
          const first = yield* list({})
          assert.deepStrictEqual(
            first.rows.map(({ id }) => id),
            ids.toReversed().slice(0, page)
          )
          assert.isAtMost(first.read, 3 * page)
          const one = yield* list({ text: "USER-17@example.com" })
          assert.deepStrictEqual(
            one.rows.map(({ id }) => id),
            [ids[16]]
          )
          assert.isAtMost(one.read, 10)
          assert.isAtMost((yield* list({ text: ids[3]! })).read, 10)
          // A page and its end, each with users and their wallets
          const bound = 4 * listScanRowsMax + 2 * page
          const none = yield* list({ text: "nobody" })
          assert.deepStrictEqual([none.rows, none.end], [[], ids[count - listScanRowsMax]])
          assert.isAtMost(none.read, bound)
          const last = yield* list({ text: "nobody" }, none.end!)
          assert.deepStrictEqual([last.rows, last.end], [[], null])
          const disabled = yield* list({ state: "disabled" })
          assert.deepStrictEqual(
            disabled.rows.map(({ id }) => id),
            [ids[11_999], ids[7999], ids[3999]]
          )
          assert.isAtMost(disabled.read, bound)
        })
      )
    })
  })
}
