import { NodeServices } from "@effect/platform-node"
import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, Fiber, Layer, Result, Schedule, Scope } from "effect"
import { SqlClient } from "effect/sql"
import { TestClock } from "effect/testing"
import { randomBytes } from "node:crypto"
import { advance } from "../../support/gateway.ts"
import { startProcess } from "../../support/startProcess.ts"
import { stores } from "../../support/stores.ts"

/** ADR 0222 */

const newKey = () => randomBytes(32).toString("base64")

/** Starts several processes at once: each waits for a lock before any has written its row. Returns the outcomes. */
const startAtOnce = Effect.fnUntraced(function* (keys: ReadonlyArray<string>) {
  const store = yield* Layer.build(stores.postgres)
  const sql = Context.get(store, SqlClient.SqlClient)
  const allWait = sql`
    SELECT count(*)::int AS n FROM pg_stat_activity
    WHERE datname = current_database() AND wait_event_type = 'Lock'`.pipe(
    Effect.filterOrFail(([row]) => row?.["n"] === keys.length),
    Effect.retry(Schedule.spaced("20 millis")),
    TestClock.withLive
  )
  const scope = yield* Effect.scope
  const starting = yield* Effect.scoped(
    Effect.gen(function* () {
      const connection = yield* sql.reserve
      const run = (statement: string) => connection.executeUnprepared(statement, [], undefined)
      yield* run("BEGIN")
      yield* run("LOCK TABLE processes IN SHARE ROW EXCLUSIVE MODE")
      const fibers = yield* Effect.forEach(keys, (key) =>
        startProcess(store, key).pipe(
          Effect.provideService(Scope.Scope, scope),
          Effect.result,
          Effect.forkIn(scope)
        )
      )
      yield* allWait
      yield* run("COMMIT")
      return fibers
    })
  )
  while (starting.some((fiber) => fiber.pollUnsafe() === undefined)) {
    yield* Effect.provide(advance("1 second"), store)
  }
  return yield* Fiber.joinAll(starting)
})

describe("processes that start at once (postgres)", () => {
  it.effect("with two master keys: one runs, the other is refused", () =>
    Effect.gen(function* () {
      const results = yield* startAtOnce([newKey(), newKey()])
      assert.lengthOf(results.filter(Result.isSuccess), 1)
      const refused = results.find(Result.isFailure)
      assert.match(
        String(refused?.failure.message),
        /^MASTER_KEY: running processes encrypt under a key that is not among these: proc_/u
      )
    }).pipe(Effect.scoped, Effect.provide(NodeServices.layer))
  )

  it.effect("with one master key: all run", () =>
    Effect.gen(function* () {
      const key = newKey()
      const results = yield* startAtOnce([key, key, key])
      assert.lengthOf(results.filter(Result.isSuccess), 3)
    }).pipe(Effect.scoped, Effect.provide(NodeServices.layer))
  )
})
