import { assert, describe, it } from "@effect/vitest"
import { Duration, Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"
import {
  callDuring,
  colour,
  functions,
  lockOthers,
  tryingIn,
  upgraded,
  whileLocked
} from "../../support/upgrade.ts"

describe("an upgrade beside processes of the previous release", () => {
  it.live("shows the schema together with its functions, and no state in between", () =>
    Effect.gen(function* () {
      const { folder, migrate, other, waiting } = yield* upgraded
      folder.write({ "0002_colour.sql": colour, "0003_others.sql": "drop table others" })
      folder.writeFunctions(functions("n, 'a', 'red'"))
      const migrating = yield* whileLocked(
        other,
        lockOthers,
        Effect.gen(function* () {
          const fiber = yield* Effect.forkChild(migrate)
          yield* waiting(1)
          const columns = yield* other`SELECT id FROM schema_migrations`
          assert.lengthOf(columns, 1)
          return fiber
        })
      )
      assert.deepStrictEqual(yield* Fiber.join(migrating), [
        "0002_colour",
        "0003_others",
        "functions/things"
      ])
      yield* other`SELECT thing_add(1)`
      assert.deepStrictEqual(yield* other`SELECT * FROM things`, [
        { id: 1, name: "a", colour: "red" }
      ])
    })
  )

  it.live("does not keep others from a table that is locked for long", () =>
    Effect.gen(function* () {
      const { folder, migrate, other, session, waiting } = yield* upgraded
      folder.write({ "0002_others.sql": "alter table others add column name text" })
      const third = yield* session
      const migrating = yield* whileLocked(
        other,
        lockOthers,
        Effect.gen(function* () {
          const fiber = yield* Effect.forkChild(migrate)
          yield* waiting(1)
          yield* third`INSERT INTO others VALUES (1)`
          return fiber
        })
      )
      assert.deepStrictEqual(yield* Fiber.join(migrating), ["0002_others"])
    })
  )

  it.live("waits for running calls, and changes nothing before they end", () =>
    Effect.gen(function* () {
      const { folder, migrate, other, session, waiting } = yield* upgraded
      folder.write({ "0002_colour.sql": colour })
      folder.writeFunctions(functions("n, 'a', 'red'"))
      const third = yield* session
      const begun = Effect.gen(function* () {
        const fiber = yield* Effect.forkChild(migrate)
        yield* waiting(1)
        yield* third`INSERT INTO things VALUES (1, 'b')`
        return fiber
      })
      const migrating = yield* whileLocked(other, "SELECT 1 FROM turns FOR UPDATE", begun)
      yield* Fiber.join(migrating)
      assert.deepStrictEqual(yield* third`SELECT * FROM things`, [
        { id: 1, name: "b", colour: null }
      ])
    })
  )

  it.live("causes calls that waited for it to be repeated, not run with an old function body", () =>
    Effect.gen(function* () {
      const beside = yield* upgraded
      const { folder, migrate, session } = beside
      folder.write({
        "0002_colour.sql": `${colour}; drop table others`
      })
      folder.writeFunctions(functions("n, 'a', 'red'"))
      const third = yield* session
      const [migrating, calling] = yield* callDuring(
        beside,
        migrate,
        Effect.flip(third`SELECT thing_add(1)`)
      )
      yield* Fiber.join(migrating)
      const error = yield* Fiber.join(calling)
      assert.isTrue(error.isRetryable, String(error.reason.cause))
      yield* third`SELECT thing_add(1)`
    })
  )

  it.live("changes nothing and stops no one if it comes second", () =>
    Effect.gen(function* () {
      const { folder, migrate, other, session, waiting } = yield* upgraded
      folder.write({ "0002_others.sql": "alter table others add column name text" })
      const third = yield* session
      const [first, moving] = yield* whileLocked(
        other,
        lockOthers,
        Effect.gen(function* () {
          const first = yield* Effect.forkChild(migrate)
          yield* waiting(1)
          const second = yield* Effect.forkChild(migrate)
          yield* waiting(2)
          // Queues before the second one for what the upgrade locks
          const moving = yield* Effect.forkChild(
            whileLocked(third, "SELECT 1 FROM turns FOR UPDATE", Fiber.join(second))
          )
          yield* waiting(3)
          return [first, moving] as const
        })
      )
      assert.deepStrictEqual(yield* Fiber.join(first), ["0002_others"])
      assert.deepStrictEqual(yield* Fiber.join(moving), [])
    })
  )

  it.effect(
    "tries less and less often while a table stays locked, because each attempt stops money",
    () =>
      Effect.gen(function* () {
        const { folder, migrate, other, session, untilPaused } = yield* upgraded
        folder.write({ "0002_others.sql": "alter table others add column name text" })
        const third = yield* session
        const isTrying = tryingIn(third)
        const migrating = yield* whileLocked(
          other,
          lockOthers,
          Effect.gen(function* () {
            const fiber = yield* Effect.forkChild(migrate)
            for (const [failed, seconds] of [2, 4].entries()) {
              yield* untilPaused(failed + 1)
              yield* TestClock.adjust(Duration.seconds(seconds - 1))
              // Each round trip lets one more statement of an attempt finish
              for (let round = 0; round < 9; round++) assert.isFalse(yield* isTrying)
              yield* TestClock.adjust("1 second")
            }
            yield* untilPaused(3)
            return fiber
          })
        )
        yield* TestClock.adjust("8 seconds")
        assert.deepStrictEqual(yield* Fiber.join(migrating), ["0002_others"])
      })
  )
})
