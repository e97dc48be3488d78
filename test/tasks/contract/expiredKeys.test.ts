import { PgClient } from "@effect/sql-pg"
import { assert, layer } from "@effect/vitest"
import { DateTime, Effect, Fiber, Layer, Option, Schedule } from "effect"
import { TestClock } from "effect/testing"
import { idempotencyHours } from "../../../src/domain/limits/Limits.ts"
import { TaskStore } from "../../../src/tasks/TaskStore.ts"
import { ManageReplayStore } from "../../../src/users/ManageReplayStore.ts"
import { stores } from "../../support/stores.ts"
import { accept, callKeyOf, newCaller, walletStores } from "../../support/wallets.ts"

const anyUser = "00000000-0000-0000-0000-000000000000"

/** Stops every create after it has written its key, until `release`. The table is large enough for a scan by place. */
const holdCreates = Effect.gen(function* () {
  const sql = yield* PgClient.PgClient
  const now = DateTime.toDateUtc(yield* DateTime.now)
  yield* sql`
    INSERT INTO idempotency_keys (user_id, key, request_hash, body, created_at)
    SELECT ${anyUser}::uuid, n::text, '', repeat('x', 500), ${now} FROM generate_series(1, 2000) n`
  yield* sql`ANALYZE idempotency_keys`.unprepared
  yield* sql`
    CREATE FUNCTION hold_key() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
      PERFORM pg_advisory_xact_lock_shared(1);
      RETURN NULL;
    END $$`.unprepared
  yield* sql`CREATE TRIGGER hold_key AFTER UPDATE ON idempotency_keys
    FOR EACH ROW EXECUTE FUNCTION hold_key()`.unprepared
  const connection = yield* sql.reserve
  const run = (statement: string) => connection.executeUnprepared(statement, [], undefined)
  const release = run("COMMIT")
  yield* Effect.addFinalizer(() => Effect.orDie(release))
  yield* run("BEGIN")
  yield* run("SELECT pg_advisory_xact_lock(1)")
  return { release }
})

const waiting = (connections: number) =>
  Effect.flatMap(
    PgClient.PgClient,
    (sql) => sql`
      SELECT count(*)::int AS n FROM pg_stat_activity
      WHERE datname = current_database() AND wait_event_type = 'Lock'`
  ).pipe(
    Effect.filterOrFail(([row]) => row?.["n"] === connections),
    Effect.retry(Schedule.spaced("20 millis")),
    TestClock.withLive
  )

/** docs/reference/tasks.md#idempotency */
layer(
  ManageReplayStore.layer.pipe(
    Layer.provideMerge(walletStores),
    Layer.provideMerge(stores.postgres)
  ),
  { timeout: "60 seconds" }
)("an expired idempotency key", (it) => {
  it.effect("is kept if it is used again while it is being deleted, so a repeat buys nothing", () =>
    Effect.gen(function* () {
      const replays = yield* ManageReplayStore
      const tasks = yield* TaskStore
      const userId = yield* newCaller(100)
      const isFound = Effect.gen(function* () {
        const now = yield* DateTime.now
        const since = DateTime.subtract(now, { hours: idempotencyHours })
        const caller = { userId, apiKeyId: callKeyOf(userId), rotation: 0 }
        return Option.isSome(yield* tasks.findReplay({ ...caller, key: "daily", since, now }))
      })
      const create = Effect.gen(function* () {
        const since = DateTime.subtract(yield* DateTime.now, { hours: idempotencyHours })
        const idempotency = Option.some({
          key: "daily",
          requestHash: new Uint8Array(32),
          responseBody: "{}",
          since
        })
        return (yield* accept(userId, 1, { idempotency })).outcome._tag
      })
      assert.strictEqual(yield* create, "Accepted")
      yield* TestClock.adjust(`${idempotencyHours} hours`)
      assert.isTrue(yield* isFound)
      assert.strictEqual(yield* create, "Replayed", "24 hours later")
      yield* TestClock.adjust("1 milli")
      assert.isFalse(yield* isFound)
      const { release } = yield* holdCreates
      const creating = yield* Effect.forkChild(create)
      yield* waiting(1)
      const before = DateTime.subtract(yield* DateTime.now, { hours: idempotencyHours })
      const deleting = yield* Effect.forkChild(replays.deleteOlder(before, 1000))
      yield* Effect.race(waiting(2), Fiber.await(deleting))
      yield* release
      assert.strictEqual(yield* Fiber.join(creating), "Accepted")
      assert.strictEqual(yield* Fiber.join(deleting), 0)
      assert.strictEqual(yield* create, "Replayed")
    }).pipe(Effect.scoped)
  )
})
