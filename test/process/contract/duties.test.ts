import { assert, it } from "@effect/vitest"
import { DateTime, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { ProcessStore } from "../../../src/process/heartbeat/ProcessStore.ts"
import { describeStores } from "../../support/stores.ts"
import { whileLocked } from "../../support/upgrade.ts"

const at = (seconds: number) => DateTime.makeUnsafe(1_700_000_000_000 + seconds * 1000)

const duties = [
  { name: "often", seconds: 2 },
  { name: "hourly", seconds: 3600 }
]

const beat = (id: string, second: number) =>
  Effect.flatMap(ProcessStore, (store) => store.heartbeat(id, at(second), duties))

const taken = (id: string, second: number) =>
  Effect.map(beat(id, second), (news) => news.duties.toSorted())

describeStores("heartbeats", (database, kind) => {
  const store = ProcessStore.layer.pipe(Layer.provideMerge(database))

  it.effect("give each duty to one process per interval, whichever asks first", () =>
    Effect.gen(function* () {
      const all = yield* Effect.all(
        Array.from({ length: 8 }, (_, n) => taken(`proc_${n}`, 0)),
        { concurrency: "unbounded" }
      )
      assert.deepStrictEqual(all.flat().toSorted(), ["hourly", "often"])
      assert.deepStrictEqual(yield* taken("proc_a", 1), [])
      assert.deepStrictEqual(yield* taken("proc_b", 2), ["often"])
      assert.deepStrictEqual(yield* taken("proc_a", 3), [])
      // 1,700,000,000 is 800 seconds after a full hour
      assert.deepStrictEqual(yield* taken("proc_a", 2799), ["often"])
      assert.deepStrictEqual(yield* taken("proc_b", 2800), ["hourly", "often"])
    }).pipe(Effect.provide(store))
  )

  if (kind === "postgres") {
    it.effect("leave the duties to a process that is taking them", () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        const take = (id: string) => `SELECT duties_take('${id}', now(), '{often}', '{2}') AS names`
        const others = sql.withTransaction(
          Effect.andThen(sql`SET LOCAL lock_timeout = '2s'`, sql.unsafe(take("proc_b")))
        )
        assert.deepStrictEqual(yield* whileLocked(sql, take("proc_a"), others), [{ names: [] }])
      }).pipe(Effect.provide(store))
    )
  }

  it.effect("give a duty again soon after a process with a fast clock took it", () =>
    Effect.gen(function* () {
      assert.lengthOf(yield* taken("proc_ahead", 90_000), 2)
      assert.lengthOf(yield* taken("proc_a", 0), 2)
      assert.lengthOf(yield* taken("proc_a", 1), 0)
    }).pipe(Effect.provide(store))
  )

  it.effect(
    "report which process is silent, whether tasks wait or are owned, and what has changed",
    () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        const first = yield* beat("proc_a", 0)
        assert.isNull(first.silent)
        assert.deepStrictEqual([first.waiting, first.owns], [false, false])
        yield* beat("proc_b", 1)
        yield* beat("proc_c", 2)
        assert.deepStrictEqual((yield* beat("proc_a", 3)).silent, at(1))
        assert.deepStrictEqual((yield* beat("proc_a", 12)).silent, at(2), "proc_b is dead")
        yield* sql`
        INSERT INTO account_drains (account_id, since) VALUES ('openai', now())`
        yield* sql`
        INSERT INTO runs (task_id, deadline_at, queue, due_at, owner)
        SELECT gen_random_uuid(), now(), 'q', now(), owner FROM unnest(ARRAY['proc_a', NULL]) owner`.pipe(
          Effect.provideService(SqlClient.SqlClient, sql)
        )
        const later = yield* beat("proc_a", 13)
        assert.deepStrictEqual([later.waiting, later.owns], [true, true])
        assert.isFalse((yield* beat("proc_b", 13)).owns)
        assert.notStrictEqual(later.drains, first.drains)
        assert.strictEqual(later.catalog, first.catalog)
      }).pipe(Effect.provide(store))
  )
})
