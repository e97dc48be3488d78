import { PgClient } from "@effect/sql-pg"
import { assert, describe } from "@effect/vitest"
import { DateTime, Effect, Layer } from "effect"
import { ApiKeyId, makeTaskId } from "../../../src/domain/Ids.ts"
import type { UserId } from "../../../src/domain/Ids.ts"
import { listScanRowsMax } from "../../../src/domain/limits/Limits.ts"
import { TaskHistoryStore } from "../../../src/tasks/history/TaskHistoryStore.ts"
import type { TaskFilter } from "../../../src/tasks/history/TaskHistoryStore.ts"
import { liveLayer } from "../../support/liveLayer.ts"
import { countSoFar } from "../../support/statistics.ts"
import { singleStores } from "../../support/stores.ts"
import { credits, newWallet, walletStores } from "../../support/wallets.ts"

/** docs/reference/http.md#lists, ADR 0165 */

const begin = Date.parse("2026-11-20T00:00:00Z")
const count = 12_500
/** An id begins with such a period, in its first 22 bits. */
const periodMillis = 2 ** 26
const keyOf = (user: UserId) => ApiKeyId.make(`key_${user}`)

/**
 * Tasks of a user, one per second, starting with the first of these numbers; every 5000th failed, every 2500th has
 * another model.
 */
const makeTasks = Effect.fnUntraced(function* (user: UserId, first: number, some: number) {
  const sql = yield* PgClient.PgClient
  const ids = Array.from({ length: some }, (_, n) => makeTaskId(begin + (first + n) * 1000))
  yield* sql`
    INSERT INTO tasks (id, user_id, api_key_id, vendor, model, action, result_kind, status, body, sandbox, price,
      captured, error, trace_id, created_at, updated_at)
    SELECT x.id, ${user}, ${keyOf(user)}, 'alibaba', CASE WHEN n % 2500 = 0 THEN 'rare' ELSE 'common' END,
      'generation', 'images', CASE WHEN n % 5000 = 0 THEN 'failed' ELSE 'completed' END, '{}', true, 1000000000,
      1000000, CASE WHEN n % 5000 = 0 THEN '{"code": 4004, "title": "", "detail": ""}'::jsonb END,
      md5(x.id::text), ${new Date(begin)}::timestamptz, ${new Date(begin)}::timestamptz
    FROM (SELECT id, ${first} + (i - 1)::int AS n FROM unnest(${ids}::uuid[]) WITH ORDINALITY AS u(id, i)) x`
})

/** Tasks of one trace. */
const insertTraced = Effect.fnUntraced(function* (
  user: UserId,
  ids: ReadonlyArray<string>,
  traceId: string
) {
  const sql = yield* PgClient.PgClient
  yield* sql`
    INSERT INTO tasks (id, user_id, vendor, model, action, result_kind, status, body, sandbox, price, trace_id,
      created_at, updated_at)
    SELECT id, ${user}, 'alibaba', 'common', 'generation', 'images', 'pending', '{}', true, 0, ${traceId},
      ${new Date(begin)}::timestamptz, ${new Date(begin)}::timestamptz
    FROM unnest(${ids}::uuid[]) AS u (id)`
})

const fill = (user: UserId) => makeTasks(user, 0, count)
const statement = (text: string) =>
  Effect.flatMap(PgClient.PgClient, (sql) => sql.unsafe(text).unprepared)

/** The cost of a page must depend neither on the order of rows nor on the planner's statistics. */
const shapes: Readonly<
  Record<string, (user: UserId) => Effect.Effect<unknown, unknown, PgClient.PgClient>>
> = {
  "full pages": (user) => Effect.andThen(fill(user), statement("ANALYZE tasks")),
  "pages half full": (user) =>
    statement("ALTER TABLE tasks SET (fillfactor = 50)").pipe(
      Effect.andThen(fill(user)),
      Effect.andThen(statement("ANALYZE tasks"))
    ),
  "a page a row": (user) =>
    statement("ALTER TABLE tasks SET (fillfactor = 10)").pipe(
      Effect.andThen(fill(user)),
      Effect.andThen(statement("ANALYZE tasks"))
    ),
  "a table that updates have bloated": (user) =>
    Effect.gen(function* () {
      yield* fill(user)
      for (let n = 0; n < 4; n += 1) {
        yield* statement(`UPDATE tasks SET body = '{"n":${n}}', trace_id = md5(trace_id)`)
      }
      yield* statement("ANALYZE tasks")
    }),
  "statistics of an empty table": (user) => Effect.andThen(statement("ANALYZE tasks"), fill(user)),
  "statistics from before the user came": (user) =>
    Effect.gen(function* () {
      yield* makeTasks(yield* newWallet(0), 0, 5000)
      yield* makeTasks(user, 0, 3)
      yield* statement("ANALYZE tasks")
      yield* makeTasks(user, 3, count - 3)
    }).pipe(Effect.provide(walletStores))
}

/** Rows and index entries of tasks that this connection has read. */
const readSoFar = Effect.gen(function* () {
  const sql = yield* PgClient.PgClient
  yield* countSoFar
  const [row] = yield* sql<{ entries: number; rows: number }>`
    SELECT (SELECT sum(idx_tup_read)::int FROM pg_stat_user_indexes WHERE relname = 'tasks') AS entries,
      (seq_tup_read + coalesce(idx_tup_fetch, 0))::int AS rows
    FROM pg_stat_user_tables WHERE relname = 'tasks'`
  return row!
})

const traceOf = Effect.fnUntraced(function* (user: UserId) {
  const sql = yield* PgClient.PgClient
  const [row] = yield* sql<{ traceId: string }>`
    SELECT trace_id FROM tasks WHERE user_id = ${user} ORDER BY id LIMIT 1`
  return row!.traceId
})

const page = 21
type Filter = Partial<TaskFilter>

/** The number of matches, and the most rows that may be read. */
const expected: ReadonlyArray<readonly [Filter, found: number, rows: number]> = [
  [{}, page, page],
  [{ status: "completed" }, page, page],
  [{ vendor: "alibaba", maxCost: credits(1) }, page, page],
  [{ model: "common" }, page, page],
  [{ model: "rare" }, 5, 5],
  [{ status: "failed" }, 3, 3],
  [{ minCost: credits(900) }, 0, listScanRowsMax],
  [{ resultKind: "videos" }, 0, listScanRowsMax],
  [{ words: ["lighthouse"] }, 0, listScanRowsMax]
]

/**
 * Both stores are Postgres 18 with the same planner settings (`planning` in `Database.ts`). So one shows the plans for
 * each shape, and the other, with only the shape of its first days, that it has these settings.
 */
const shapesOf = {
  postgres: Object.keys(shapes),
  embedded: ["statistics of an empty table"]
}

for (const [name, database] of Object.entries(singleStores)) {
  for (const [shape, make] of Object.entries(shapes)) {
    if (!shapesOf[name as keyof typeof shapesOf].includes(shape)) continue
    describe(`lists of tasks over ${shape} (${name})`, () => {
      liveLayer(
        Layer.provideMerge(Layer.merge(walletStores, TaskHistoryStore.layer), database),
        "120 seconds"
      )((it) => {
        it.effect("read only what a page needs, by index, and nothing of other users", () =>
          Effect.gen(function* () {
            const store = yield* TaskHistoryStore
            const user = yield* newWallet(0)
            const other = yield* newWallet(0)
            yield* make(user)
            const check = Effect.fnUntraced(function* (
              by: UserId | null,
              filter: Filter,
              found: number,
              rows: number
            ) {
              const before = yield* readSoFar
              const result = yield* store.search(by, { ...filter, limit: page })
              const after = yield* readSoFar
              const label = Object.keys(filter).join()
              assert.lengthOf(result.rows, found, label)
              assert.isAtMost(after.rows - before.rows, rows, `rows: ${label}`)
              // Dead entries of an updated table are read too
              assert.isAtMost(after.entries - before.entries, 6 * rows, `entries: ${label}`)
            })
            const traceId = yield* traceOf(user)
            const newest = (yield* store.search(user, { limit: 1 })).rows[0]!.id
            // Plans may change after the fifth execution
            for (let times = 0; times < 7; times += 1) {
              for (const [filter, found, rows] of expected) {
                yield* check(user, filter, found, rows)
                yield* check(other, filter, 0, 0)
              }
              yield* check(user, { apiKeyId: keyOf(user) }, page, page)
              yield* check(user, { apiKeyId: keyOf(user), model: "rare" }, 4, listScanRowsMax)
              yield* check(user, { apiKeyId: keyOf(other) }, 0, 0)
              // Including the oldest and the newest task, between which all periods are searched
              yield* check(user, { traceId }, 1, 3)
              yield* check(null, { traceId }, 1, 3)
              // Of all users, however many there are
              yield* check(null, {}, page, page)
              yield* check(null, { model: "common" }, page, page)
              yield* check(null, { minCost: credits(900) }, 0, listScanRowsMax)
              yield* check(user, { ids: [newest] }, 1, 1)
              yield* check(other, { ids: [newest] }, 0, 1)
              yield* check(other, { traceId }, 0, 3)
            }
            const since = DateTime.makeUnsafe(begin + 100_000)
            const until = DateTime.makeUnsafe(begin + 102_000)
            yield* check(user, { since, until }, 2, 2)
            yield* check(other, { since, until }, 0, 0)
          })
        )
      })
    })
  }
}

liveLayer(
  Layer.provideMerge(Layer.merge(walletStores, TaskHistoryStore.layer), singleStores.postgres),
  "120 seconds"
)("tasks of a trace", (it) => {
  it.effect("are found, however many later tasks another user has in the same trace", () =>
    Effect.gen(function* () {
      const [user, other] = [yield* newWallet(0), yield* newWallet(0)]
      yield* makeTasks(user, 0, 3)
      yield* makeTasks(other, 3, count)
      const traceId = "0af7651916cd43dd8448eb211c80319c"
      yield* statement(`UPDATE tasks SET trace_id = '${traceId}'`)
      const store = yield* TaskHistoryStore
      const { end, rows } = yield* store.search(user, { traceId, limit: page })
      assert.lengthOf(rows, 3)
      assert.isNull(end)
    })
  )

  it.effect(
    "are found in every period from the oldest task to the newest, over a year and with a wrong clock",
    () =>
      Effect.gen(function* () {
        const user = yield* newWallet(0)
        const [daysOfYear, traceId] = [365, "4bf92f3577b34da6a3ce929d0e0e4736"]
        // One at each end of a period, and one with a wrong clock
        const times = Array.from({ length: daysOfYear }, (_, n) => begin - n * 86_400_000)
        const edge = Math.ceil(begin / periodMillis) * periodMillis
        const ids = [edge, edge - 1, ...times, 0].map(makeTaskId)
        yield* insertTraced(user, ids, traceId)
        const store = yield* TaskHistoryStore
        const search = (filter: Filter) => store.search(user, { traceId, limit: 500, ...filter })
        const idsOf = (found: { readonly rows: ReadonlyArray<{ readonly id: string }> }) =>
          found.rows.map(({ id }) => id)
        assert.deepStrictEqual(idsOf(yield* search({})), ids)
        assert.deepStrictEqual(idsOf(yield* search({ before: ids[0]!, limit: 2 })), ids.slice(1, 3))
        const since = DateTime.makeUnsafe(edge)
        assert.deepStrictEqual(idsOf(yield* search({ since })), ids.slice(0, 1))
        assert.deepStrictEqual(idsOf(yield* search({ until: since })), ids.slice(1))
        assert.isEmpty((yield* search({ since: DateTime.add(since, { hours: 1 }) })).rows)
        assert.isEmpty((yield* search({ traceId: "0".repeat(32) })).rows)
      })
  )
})
