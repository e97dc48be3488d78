import { PgClient } from "@effect/sql-pg"
import { assert } from "@effect/vitest"
import { DateTime, Effect, Layer, Option, Schema } from "effect"
import type { CallBatchOutcome } from "../../../src/passthrough/CallStore.ts"
import type { AcceptOutcome, FinishOutcome } from "../../../src/tasks/TaskStore.ts"
import { WalletStore } from "../../../src/wallet/WalletStore.ts"
import type { AdditionOutcome } from "../../../src/wallet/WalletStore.ts"
import { liveLayer } from "../../support/liveLayer.ts"
import { postgresDatabase } from "../../support/stores.ts"
import {
  accept,
  breachesOf,
  callEnd,
  callStart,
  credits,
  finish,
  ledgerOf,
  newCaller,
  newTaskId,
  newWallet,
  subscribe,
  walletStores,
  writeCalls
} from "../../support/wallets.ts"

/** Every table that a create, the end of a task or a top-up writes. */
const tables = [
  "wallets",
  "wallet_entries",
  "holds",
  "tasks",
  "runs",
  "events",
  "deliveries",
  "delivery_queue",
  "idempotency_keys",
  "calls",
  "api_keys"
]

/**
 * Triggers that end the server's side of the connection at the n-th statement from now, before or
 * after the row is written, or at the commit. Sequences are not rolled back: they continue.
 */
const armKills = Effect.gen(function* () {
  const sql = yield* PgClient.PgClient
  yield* sql`CREATE SEQUENCE kill_step`
  yield* sql`CREATE SEQUENCE kill_at`
  yield* sql.unsafe(`CREATE FUNCTION kill() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
      IF nextval('kill_step') = (SELECT last_value FROM kill_at) THEN
        PERFORM pg_terminate_backend(pg_backend_pid());
        PERFORM pg_sleep(5);
      END IF;
      RETURN coalesce(new, old);
    END $$`)
  for (const table of tables) {
    for (const moment of ["BEFORE", "AFTER"]) {
      yield* sql.unsafe(`CREATE TRIGGER kill_${moment} ${moment} INSERT OR UPDATE OR DELETE ON ${table}
        FOR EACH ROW EXECUTE FUNCTION kill()`)
    }
  }
  yield* sql.unsafe(`CREATE CONSTRAINT TRIGGER kill_commit AFTER UPDATE ON wallets
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION kill()`)
})

const Steps = Schema.NonEmptyArray(Schema.Struct({ n: Schema.BigInt }))

/** Kills the connection at step 1, 2, … of the operation, retrying each time, until no step is left. */
const killEverywhere = Effect.fnUntraced(function* <A, E, R, R2, R3>(
  prepare: Effect.Effect<
    {
      readonly operation: Effect.Effect<A, E, R>
      readonly check: (outcome: A) => Effect.Effect<void, unknown, R3>
    },
    unknown,
    R2
  >
) {
  const sql = yield* PgClient.PgClient
  let kills = 0
  for (let step = 1; step < 100; step += 1) {
    yield* sql`SELECT setval('kill_at', ${2 ** 30})`
    const { check, operation } = yield* prepare
    yield* sql`SELECT setval('kill_step', 1, false), setval('kill_at', ${step})`
    const first = yield* Effect.exit(operation)
    const [{ n }] = yield* Schema.decodeUnknownEffect(Steps)(
      yield* sql`SELECT CASE WHEN is_called THEN last_value ELSE 0 END AS n FROM kill_step`
    )
    const outcome = first._tag === "Success" ? first.value : yield* operation
    yield* sql`SELECT setval('kill_at', ${2 ** 30})`
    yield* check(outcome)
    if (first._tag === "Success") {
      assert.isBelow(Number(n), step, "no step is left for a kill")
      return kills
    }
    kills += 1
  }
  throw new Error("the operation never completed")
})

liveLayer(Layer.provideMerge(walletStores, postgresDatabase))("a killed connection", (it) => {
  it.effect(
    "at any statement of a create leaves nothing, and the retry creates one task",
    () =>
      Effect.gen(function* () {
        yield* armKills
        const kills = yield* killEverywhere(
          Effect.gen(function* () {
            const userId = yield* newWallet(100)
            yield* subscribe(userId, ["task.created"])
            const now = yield* DateTime.now
            const taskId = newTaskId()
            return {
              operation: accept(userId, 7.5, {
                taskId,
                idempotency: Option.some({
                  key: "k",
                  requestHash: new Uint8Array(32),
                  responseBody: "{}",
                  since: DateTime.subtract(now, { hours: 24 })
                })
              }).pipe(Effect.map((it) => it.outcome)),
              check: Effect.fnUntraced(function* (outcome: AcceptOutcome) {
                assert.deepInclude(outcome, { _tag: "Accepted", balance: credits(92.5) })
                assert.strictEqual((yield* ledgerOf(userId)).length, 2)
                assert.strictEqual(yield* breachesOf(userId), 0)
                // The response was lost after the commit, and a repeat changes nothing
                const again = yield* accept(userId, 7.5, { taskId })
                assert.deepInclude(again.outcome, { _tag: "Accepted", balance: credits(92.5) })
                assert.strictEqual((yield* ledgerOf(userId)).length, 2)
              })
            }
          })
        )
        assert.isAtLeast(kills, 16)
      }),
    180_000
  )

  it.effect(
    "at any statement of a task's end with an alert leaves nothing, and the retry ends it once",
    () =>
      Effect.gen(function* () {
        const kills = yield* killEverywhere(
          Effect.gen(function* () {
            const userId = yield* newWallet(1001)
            yield* subscribe(userId, ["task.succeeded", "balance.low"])
            const { taskId } = yield* accept(userId, 12)
            return {
              operation: finish(taskId, 9),
              check: Effect.fnUntraced(function* (outcome: FinishOutcome) {
                assert.strictEqual(outcome._tag, "Finished")
                const sql = yield* PgClient.PgClient
                assert.strictEqual((yield* ledgerOf(userId)).length, 4)
                assert.strictEqual(yield* breachesOf(userId), 0)
                const found = yield* sql`
                SELECT event_type FROM deliveries WHERE user_id = ${userId} ORDER BY 1`
                assert.deepStrictEqual(
                  found.map((row) => row.eventType),
                  ["balance.low", "task.succeeded"]
                )
                assert.deepInclude(yield* finish(taskId, 9), { _tag: "Fenced" })
              })
            }
          })
        )
        assert.isAtLeast(kills, 20)
      }),
    180_000
  )

  it.effect(
    "at any statement of a top-up or a batch of calls leaves nothing, and the retry does it once",
    () =>
      Effect.gen(function* () {
        const wallets = yield* WalletStore
        const topUps = yield* killEverywhere(
          Effect.gen(function* () {
            const userId = yield* newWallet(10)
            const now = yield* DateTime.now
            return {
              operation: wallets.add({
                userId,
                kind: "top_up",
                amount: credits(5),
                operationId: `top_up:${userId}:x`,
                note: null,
                traceId: "",
                now
              }),
              check: Effect.fnUntraced(function* (outcome: AdditionOutcome) {
                assert.strictEqual(outcome._tag, "Added")
                const entries = yield* ledgerOf(userId)
                assert.strictEqual(entries.at(-1)?.settledAfter, credits(15))
                assert.strictEqual(entries.length, 2)
                assert.strictEqual(yield* breachesOf(userId), 0)
              })
            }
          })
        )
        assert.isAtLeast(topUps, 4)
        const batches = yield* killEverywhere(
          Effect.gen(function* () {
            const userId = yield* newCaller(1001)
            yield* subscribe(userId)
            const first = callStart(userId, 5)
            const second = callStart(userId, 1)
            yield* writeCalls({ starts: [first] })
            return {
              operation: writeCalls({ ends: [callEnd(first, 4)], starts: [second] }),
              check: Effect.fnUntraced(function* ({ refused }: CallBatchOutcome) {
                assert.strictEqual(refused.size, 0)
                const entries = yield* ledgerOf(userId)
                assert.deepInclude(entries.at(-1), {
                  kind: "hold",
                  settledAfter: credits(997),
                  heldAfter: credits(1)
                })
                assert.strictEqual(entries.length, 5)
                assert.strictEqual(yield* breachesOf(userId), 0)
              })
            }
          })
        )
        assert.isAtLeast(batches, 20)
      }),
    180_000
  )
})
