import { PgClient } from "@effect/sql-pg"
import { assert, layer } from "@effect/vitest"
import { DateTime, Effect, Fiber, Layer, Option, Schedule } from "effect"
import { TestClock } from "effect/testing"
import type { UserId } from "../../../src/domain/Ids.ts"
import { UserErasureStore } from "../../../src/tasks/privacy/UserErasureStore.ts"
import { UserStore } from "../../../src/users/UserStore.ts"
import { stores } from "../../support/stores.ts"
import { accept, callKeyOf, newCaller, walletStores } from "../../support/wallets.ts"

/** Stops every create after it has read its key, until `release`. */
const holdCreates = Effect.gen(function* () {
  const sql = yield* PgClient.PgClient
  yield* sql`
    CREATE FUNCTION hold_create() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
      PERFORM pg_advisory_xact_lock_shared(1);
      RETURN NEW;
    END $$`.unprepared
  yield* sql`CREATE TRIGGER hold_create BEFORE INSERT ON tasks
    FOR EACH ROW EXECUTE FUNCTION hold_create()`.unprepared
  const connection = yield* sql.reserve
  const run = (statement: string) => connection.executeUnprepared(statement, [], undefined)
  const release = run("COMMIT")
  const drop = sql`DROP FUNCTION hold_create CASCADE`.unprepared
  yield* Effect.addFinalizer(() => Effect.orDie(Effect.andThen(release, drop)))
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

const layers = Layer.merge(walletStores, UserErasureStore.layer).pipe(
  Layer.provideMerge(stores.postgres)
)

/** docs/reference/keys-and-limits.md#revocation */
layer(layers, { timeout: "60 seconds" })("the end of a key", (it) => {
  it.effect.each(["revokeKey", "rotateKey", "deleteUser"] as const)(
    "waits for creates that have read the key (%s)",
    (how) =>
      Effect.gen(function* () {
        const users = yield* UserStore
        const erasures = yield* UserErasureStore
        const userId = yield* newCaller(100)
        const apiKeyId = callKeyOf(userId)
        const now = yield* DateTime.now
        const rotation = { keyHash: Buffer.from(now.toString()), preview: "", oldUntil: null }
        const end = {
          revokeKey: users.revokeKey(userId, apiKeyId, now),
          rotateKey: users.rotateKey(userId, apiKeyId, rotation),
          deleteUser: erasures.delete(userId, now)
        }[how]
        const { release } = yield* holdCreates
        const create = accept(userId, 1, { apiKeyId, rotation: 0 })
        const creating = yield* Effect.forkChild(create)
        yield* waiting(1)
        const ending = yield* Effect.forkChild(end)
        yield* Effect.race(waiting(2), Fiber.await(ending))
        assert.isUndefined(ending.pollUnsafe())
        yield* release
        assert.strictEqual((yield* Fiber.join(creating)).outcome._tag, "Accepted")
        yield* Fiber.join(ending)
        assert.strictEqual((yield* create).outcome._tag, "KeyEnded")
      }).pipe(Effect.scoped)
  )

  it.effect("is final, and only its user ends it: no change has an effect afterward", () =>
    Effect.gen(function* () {
      const users = yield* UserStore
      const sql = yield* PgClient.PgClient
      const owner = yield* newCaller(100)
      const key = callKeyOf(owner)
      const stored = sql`SELECT * FROM api_keys WHERE id = ${key}`
      const now = yield* DateTime.now
      const rotation = { keyHash: Buffer.from(key), preview: "", oldUntil: null }
      const changes = (user: UserId) => [
        users.updateKey(user, key, { name: "changed" }, now),
        users.rotateKey(user, key, rotation)
      ]
      const other = yield* newCaller(100)
      const before = yield* stored
      for (const change of [...changes(other), users.revokeKey(other, key, now)]) {
        assert.isTrue(Option.isNone<unknown>(yield* change))
      }
      assert.deepStrictEqual(yield* stored, before)
      yield* users.revokeKey(owner, key, now)
      const revoked = yield* stored
      for (const change of changes(owner)) assert.isTrue(Option.isNone<unknown>(yield* change))
      yield* users.revokeKey(owner, key, DateTime.add(now, { seconds: 1 }))
      assert.deepStrictEqual(yield* stored, revoked)
    })
  )
})
