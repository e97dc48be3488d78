import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"
import {
  callDuring,
  colour,
  functions,
  lockOthers,
  makeRole,
  tryingIn,
  upgraded,
  whileLocked
} from "../../support/upgrade.ts"

/** ADR 0158 */
describe("an upgrade beside other roles and other starters", () => {
  it.live("also cancels the calls of another role", () =>
    Effect.gen(function* () {
      const beside = yield* upgraded
      const { folder, migrate, other, sessionAs } = beside
      folder.write({ "0002_colour.sql": `${colour}; drop table others` })
      folder.writeFunctions(functions("n, 'a', 'red'"))
      const stranger = yield* sessionAs(yield* makeRole(other))
      const [migrating, calling] = yield* callDuring(
        beside,
        migrate,
        Effect.flip(stranger`SELECT thing_add(1)`)
      )
      yield* Fiber.join(migrating)
      assert.isTrue((yield* Fiber.join(calling)).isRetryable)
    })
  )

  it.live("continues beside calls of a role that it may not cancel, and logs it", () =>
    Effect.gen(function* () {
      const beside = yield* upgraded
      const { folder, migrateAs, other, session, sessionAs, warnings } = beside
      folder.write({ "0002_colour.sql": `${colour}; drop table others` })
      folder.writeFunctions(functions("n, 'a', 'red'"))
      const owner = yield* makeRole(other)
      for (const table of ["things", "turns", "others", "schema_migrations", "schema_functions"]) {
        yield* other.unsafe(`ALTER TABLE ${table} OWNER TO ${owner}`)
      }
      for (const name of ["thing_row", "thing_add"]) {
        yield* other.unsafe(`ALTER FUNCTION ${name}(int) OWNER TO ${owner}`)
      }
      const third = yield* session
      const migrator = yield* sessionAs(owner)
      const [migrating, calling] = yield* callDuring(
        beside,
        migrateAs(migrator),
        Effect.exit(third`SELECT thing_add(1)`)
      )
      assert.deepStrictEqual(yield* Fiber.join(migrating), ["0002_colour", "functions/things"])
      yield* Fiber.join(calling)
      assert.match(
        warnings.join(),
        /^Statements of the role \w+ wait for the new schema and cannot be cancelled/u
      )
    })
  )

  it.effect(
    "is tried by one of several processes while a table stays locked, and the others wait",
    () =>
      Effect.gen(function* () {
        const { folder, migrateAs, other, session, untilPaused } = yield* upgraded
        folder.write({ "0002_others.sql": "alter table others add column name text" })
        const third = yield* session
        const starters = yield* Effect.all([session, session, session])
        const isTrying = tryingIn(third)
        const migrating = yield* whileLocked(
          other,
          lockOthers,
          Effect.gen(function* () {
            const fibers = yield* Effect.forEach(starters, (sql) =>
              Effect.forkChild(migrateAs(sql))
            )
            yield* untilPaused(1)
            for (let round = 0; round < 50; round++) assert.isFalse(yield* isTrying)
            return fibers
          })
        )
        yield* TestClock.adjust("2 seconds")
        const applied = yield* Fiber.joinAll(migrating)
        assert.deepStrictEqual(applied.flat(), ["0002_others"])
      })
  )
})
